import type {
  DesiredDockerContext,
  DesiredFiles,
  FilesPart,
  UserFileChange,
  UserFileFacts,
} from '../../plan/user-files.ts';
import { contextEndpoint, provideContext, releaseContext, withdrawContext } from './docker-context.ts';
import { foreseeKubeContext, kubePort, provideKubeContext, withdrawKubeContext } from './kube-config.ts';
import { manageAutostart } from './launcher.ts';
import type { IntegrationOutcome } from './outcome.ts';
import { managePath } from './shell-files.ts';
import type { IntegrationTargets } from './targets.ts';
import type { DryRun, EditSurroundings } from './user-file.ts';

/** Reconciles one part of the user's files with the desired state. Never throws. */
export async function reconcilePart(
  part: FilesPart,
  wish: DesiredFiles,
  targets: IntegrationTargets,
  around: EditSurroundings = {},
): Promise<IntegrationOutcome[]> {
  switch (part) {
    case 'path':
      // Windows has no such files; its setting can only be `manual`.
      return targets.platform === 'win32' ? [] : managePath(wish.path, targets, around);
    case 'autostart':
      return [await manageAutostart(wish.autoStart, targets, around)];
    case 'docker':
      return wish.docker ? manageContext(wish.docker, targets, around) : [];
    case 'kube':
      if (wish.kube?.context === 'present') return [await provideKubeContext(wish.kube.file, targets, around)];
      return wish.kube ? withdrawKubeContext(targets, around) : [];
  }
}

/** What the desired state would change in the files now, by the same code that changes them. */
export async function previewChanges(targets: IntegrationTargets): Promise<Omit<UserFileFacts, 'done'>> {
  const rehearse = async (part: FilesPart, wish: Partial<DesiredFiles>): Promise<UserFileChange[]> =>
    collected((rehearsal) =>
      reconcilePart(part, { path: 'manual', autoStart: false, ...wish }, targets, { rehearsal }),
    );
  // An existing context implies that the next start has the same endpoint.
  const endpoint = (await contextEndpoint(targets)) ?? '';
  const [manual, rcfiles, on, off, selected, givenBack, noDocker, present, renewed, noKube, port] = await Promise.all([
    rehearse('path', { path: 'manual' }),
    rehearse('path', { path: 'rcfiles' }),
    rehearse('autostart', { autoStart: true }),
    rehearse('autostart', { autoStart: false }),
    rehearse('docker', { docker: { context: 'selected', endpoint } }),
    rehearse('docker', { docker: { context: 'given back' } }),
    rehearse('docker', { docker: { context: 'removed' } }),
    collected((rehearsal) => foreseeKubeContext(false, targets, rehearsal)),
    collected((rehearsal) => foreseeKubeContext(true, targets, rehearsal)),
    rehearse('kube', { kube: { context: 'removed' } }),
    kubePort(targets),
  ]);
  const foreseen = {
    path: { manual, rcfiles },
    autostart: { on, off },
    docker: { selected, 'given back': givenBack, removed: noDocker },
    kube: { present, renewed, removed: noKube },
  };
  return { foreseen, ...(port === undefined ? {} : { kubePort: port }) };
}

async function collected(work: (rehearsal: DryRun) => Promise<unknown>): Promise<UserFileChange[]> {
  const rehearsal: DryRun = new Map();
  await work(rehearsal);
  return [...rehearsal.values()];
}

function manageContext(
  wish: DesiredDockerContext,
  targets: IntegrationTargets,
  around: EditSurroundings,
): Promise<IntegrationOutcome[]> {
  switch (wish.context) {
    case 'selected':
      return provideContext(wish.endpoint, targets, around);
    case 'given back':
      return releaseContext(targets, around);
    case 'removed':
      return withdrawContext(targets, around);
  }
}

/** Removes all our content from the files of a user. Never throws; what could not be undone is `failed`. */
export async function undoIntegration(targets: IntegrationTargets): Promise<IntegrationOutcome[]> {
  return [
    await manageAutostart(false, targets),
    ...(await withdrawContext(targets)),
    ...(await withdrawKubeContext(targets)),
    ...(targets.platform === 'win32' ? [] : await managePath('manual', targets)),
  ];
}
