import { readRecordedState, readStoredSettings } from '../../../src/client/offline.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { RdError } from '../../../src/errors.ts';
import type { PathStrategy } from '../../../src/features/host-integration/shell-files.ts';
import type { IntegrationTargets } from '../../../src/features/host-integration/targets.ts';
import type { JsonObject } from '../../../src/json.ts';
import type { UserFileChange } from '../../../src/plan/user-files.ts';
import { mergeSettings } from '../../../src/settings/merge.ts';
import { requireAdopted } from '../../../src/state/drop-in.ts';
import { hostOf, hostTargets, policiesOf } from '../../arguments/environment.ts';
import type { Io } from '../../command.ts';
import { nextDriver } from '../plan/next-driver.ts';

/**
 * Returns the shell files and the autostart entry that a service changes by starting, before anything is planned; the plan of a running service no
 * longer lists them. Empty if the service will refuse to start or to use the stored settings, which it then reports itself.
 */
export async function filesAtStart(io: Io, flag: string | undefined): Promise<FilesAtStart> {
  const targets = hostTargets(io);
  if ('offBecause' in targets) return NONE;
  return unlessRefused(async () => {
    const home = homeOf(io);
    await requireAdopted(home);
    const host = hostOf(io);
    const policies = await policiesOf(io, host);
    const { settings, driver } = await readStoredSettings(home, host.platform, host, policies);
    if (!(await hasRealDriver(io, driver, flag))) return NONE;
    const { previewChanges } = await import('../../../src/features/host-integration/parts.ts');
    const { foreseen } = await previewChanges(targets);
    const { pathManagementStrategy, autoStart } = settings.application;
    return {
      files: [...foreseen.path[pathManagementStrategy], ...(autoStart ? foreseen.autostart.on : [])],
      ...(await shellAdvice(targets, pathManagementStrategy)),
    };
  });
}

/** Effects of a service's start on the user's files, and the line for a login shell that it does not set up. */
export interface FilesAtStart {
  files: UserFileChange[];
  advice?: string;
}

const NONE: FilesAtStart = { files: [] };

async function shellAdvice(targets: IntegrationTargets, strategy: PathStrategy): Promise<{ advice?: string }> {
  if (strategy !== 'rcfiles' || targets.platform === 'win32') return {};
  const [{ shellToSetUp }, { adviceText }] = await Promise.all([
    import('../../../src/features/host-integration/shell-files.ts'),
    import('../../../src/features/host-integration/login-shell.ts'),
  ]);
  const advice = await shellToSetUp(targets);
  return advice ? { advice: adviceText(advice) } : {};
}

interface StartRequest {
  driver: string | undefined;
  /** Partial settings that take effect before anything starts. */
  settings: JsonObject;
  /** Whether to take over Rancher Desktop's directories, in drop-in mode. */
  adopt: boolean;
}

/**
 * Returns all files of the user that `rdctl start` changes, until its backend runs. Empty if the service will refuse to start or to use the stored
 * settings.
 */
export async function filesOfStart(io: Io, { driver, settings, adopt }: StartRequest): Promise<FilesAtStart> {
  const targets = hostTargets(io);
  if ('offBecause' in targets) return NONE;
  return unlessRefused(async () => {
    const home = homeOf(io);
    if (!adopt) await requireAdopted(home);
    if (!(await hasRealDriver(io, (await readRecordedState(home)).driver, driver))) return NONE;
    const { estimate } = await import('../plan/estimate.ts');
    const request = { settings, state: 'started' as const, prune: [], wishes: [] };
    const { summary, userFiles = [] } = await estimate(request, io, { driver, how: 'set', name: undefined });
    if (summary.blocked > 0) return NONE;
    const host = hostOf(io);
    const stored = await readStoredSettings(home, host.platform, host, await policiesOf(io, host));
    const next = mergeSettings(stored.settings, settings).application.pathManagementStrategy;
    return { files: userFiles, ...(await shellAdvice(targets, next)) };
  });
}

/** Whether the next service has a driver that can run and simulates nothing. */
async function hasRealDriver(io: Io, recorded: string | undefined, flag: string | undefined): Promise<boolean> {
  const { driver, warnings } = await nextDriver(io, recorded, flag);
  return driver !== undefined && driver !== 'simulated' && warnings.length === 0;
}

async function unlessRefused(files: () => Promise<FilesAtStart>): Promise<FilesAtStart> {
  return files().catch((error: unknown) => {
    if (error instanceof RdError) return NONE;
    throw error;
  });
}

/** Reverts the announced changes that the start of a service made to these files. Files that cannot be changed stay. */
export async function giveBackFiles(io: Io, files: readonly UserFileChange[]): Promise<void> {
  const targets = hostTargets(io);
  if ('offBecause' in targets) return;
  const { withdrawFromFiles } = await import('../../../src/features/host-integration/parts.ts');
  await withdrawFromFiles(
    files.map(({ file }) => file),
    targets,
  );
}
