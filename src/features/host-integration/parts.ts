import { defined } from '../../json.ts';
import type {
  DesiredDockerContext,
  DesiredFiles,
  FilesPart,
  UserFileChange,
  UserFileFacts,
} from '../../plan/user-files.ts';
import { contextEndpoint, provideContext, releaseContext, withdrawContext } from './docker-context.ts';
import { kubePort, previewKubeContext, provideKubeContext, withdrawKubeContext } from './kube-config.ts';
import { manageAutostart } from './launcher.ts';
import type { IntegrationOutcome } from './outcome.ts';
import { managePath, removeBlocks } from './shell-files.ts';
import type { IntegrationTargets } from './targets.ts';
import type { DryRun, EditContext } from './user-file.ts';

/** Reconciles one part of the user's files with the desired state. Never throws. */
export async function reconcilePart(
  part: FilesPart,
  desired: DesiredFiles,
  targets: IntegrationTargets,
  context: EditContext = {},
): Promise<IntegrationOutcome[]> {
  switch (part) {
    case 'path':
      // Windows has no such files; its setting can only be `manual`.
      return targets.platform === 'win32' ? [] : managePath(desired.path, targets, context);
    case 'autostart':
      return [await manageAutostart(desired.autoStart, targets, context)];
    case 'docker':
      return desired.docker ? manageContext(desired.docker, targets, context) : [];
    case 'kube':
      if (desired.kube?.context === 'present') return [await provideKubeContext(desired.kube.file, targets, context)];
      return desired.kube ? withdrawKubeContext(targets, context) : [];
  }
}

/** Returns the changes that the desired state would make to the files now, by the same code that makes them. */
export async function previewChanges(targets: IntegrationTargets): Promise<Omit<UserFileFacts, 'done'>> {
  const preview = async (part: FilesPart, desired: Partial<DesiredFiles>): Promise<UserFileChange[]> =>
    collected((dryRun) => reconcilePart(part, { path: 'manual', autoStart: false, ...desired }, targets, { dryRun }));
  // An existing context implies that the next start has the same endpoint.
  const endpoint = (await contextEndpoint(targets)) ?? '';
  const [manual, rcfiles, on, off, selected, givenBack, noDocker, present, renewed, noKube, port] = await Promise.all([
    preview('path', { path: 'manual' }),
    preview('path', { path: 'rcfiles' }),
    preview('autostart', { autoStart: true }),
    preview('autostart', { autoStart: false }),
    preview('docker', { docker: { context: 'selected', endpoint } }),
    preview('docker', { docker: { context: 'given back' } }),
    preview('docker', { docker: { context: 'removed' } }),
    collected((dryRun) => previewKubeContext(false, targets, dryRun)),
    collected((dryRun) => previewKubeContext(true, targets, dryRun)),
    preview('kube', { kube: { context: 'removed' } }),
    kubePort(targets),
  ]);
  const foreseen = {
    path: { manual, rcfiles },
    autostart: { on, off },
    docker: { selected, 'given back': givenBack, removed: noDocker },
    kube: { present, renewed, removed: noKube },
  };
  return { foreseen, ...defined({ kubePort: port }) };
}

/** Returns the changes that `work` would make to files. */
export async function collected(work: (dryRun: DryRun) => Promise<unknown>): Promise<UserFileChange[]> {
  const dryRun: DryRun = new Map();
  await work(dryRun);
  return [...dryRun.values()];
}

function manageContext(
  desired: DesiredDockerContext,
  targets: IntegrationTargets,
  context: EditContext,
): Promise<IntegrationOutcome[]> {
  switch (desired.context) {
    case 'selected':
      return provideContext(desired.endpoint, targets, context);
    case 'given back':
      return releaseContext(targets, context);
    case 'removed':
      return withdrawContext(targets, context);
  }
}

/** Removes our content from those of these files that belong to the PATH or to the autostart. Never throws. */
export async function withdrawFromFiles(files: readonly string[], targets: IntegrationTargets): Promise<void> {
  await removeBlocks(files, targets);
  if (files.some((file) => file === targets.autostartFile)) await manageAutostart(false, targets, {});
}

/** Removes all our content from the files of a user. Never throws; content that could not be removed is `failed`. */
export async function undoIntegration(
  targets: IntegrationTargets,
  context: EditContext = {},
): Promise<IntegrationOutcome[]> {
  return [
    await manageAutostart(false, targets, context),
    ...(await withdrawContext(targets, context)),
    ...(await withdrawKubeContext(targets, context)),
    ...(targets.platform === 'win32' ? [] : await managePath('manual', targets, context)),
  ];
}

/** Returns the applied state as if these parts had not been applied. */
export function withDue({ docker, kube, ...stable }: DesiredFiles, parts: readonly FilesPart[]): DesiredFiles {
  return {
    ...stable,
    ...(parts.includes('path') ? { path: stable.path === 'manual' ? 'rcfiles' : 'manual' } : {}),
    ...(parts.includes('autostart') ? { autoStart: !stable.autoStart } : {}),
    ...(docker && !parts.includes('docker') ? { docker } : {}),
    ...(kube && !parts.includes('kube') ? { kube } : {}),
  };
}

export const PART_OF: Record<IntegrationOutcome['part'], FilesPart> = {
  path: 'path',
  autostart: 'autostart',
  'docker-context': 'docker',
  kubeconfig: 'kube',
};
