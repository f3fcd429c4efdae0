import { recordedState, storedSettings } from '../../../src/client/offline.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { RdError } from '../../../src/errors.ts';
import type { JsonObject } from '../../../src/json.ts';
import type { UserFileChange } from '../../../src/plan/user-files.ts';
import { requireAdopted } from '../../../src/state/drop-in.ts';
import { hostOf, hostTargets, policiesOf } from '../../arguments/environment.ts';
import type { Io } from '../../command.ts';
import { nextDriver } from '../plan/next-driver.ts';

/**
 * The shell files and the autostart entry that a service changes by starting, before anything is planned; the plan of a service that runs has them no more. Empty
 * where the service will refuse to start or to use what is stored, because then it says so itself.
 */
export async function filesAtStart(io: Io, flag: string | undefined): Promise<UserFileChange[]> {
  const targets = hostTargets(io);
  if ('offBecause' in targets) return [];
  return unlessRefused(async () => {
    const home = homeOf(io);
    await requireAdopted(home);
    const host = hostOf(io);
    const policies = await policiesOf(io, host);
    const { settings, driver } = await storedSettings(home, host.platform, host, policies);
    if (!(await hasRealDriver(io, driver, flag))) return [];
    const { previewChanges } = await import('../../../src/features/host-integration/parts.ts');
    const { foreseen } = await previewChanges(targets);
    const { pathManagementStrategy, autoStart } = settings.application;
    return [...foreseen.path[pathManagementStrategy], ...(autoStart ? foreseen.autostart.on : [])];
  });
}

interface StartRequest {
  driver: string | undefined;
  /** Partial settings that take effect before anything starts. */
  settings: JsonObject;
  /** Take over Rancher Desktop's directories, in drop-in mode. */
  adopt: boolean;
}

/** All files of the user that `rdctl start` changes, until its backend runs. Empty as `filesAtStart`. */
export async function filesOfStart(io: Io, { driver, settings, adopt }: StartRequest): Promise<UserFileChange[]> {
  if ('offBecause' in hostTargets(io)) return [];
  return unlessRefused(async () => {
    const home = homeOf(io);
    if (!adopt) await requireAdopted(home);
    if (!(await hasRealDriver(io, (await recordedState(home)).driver, driver))) return [];
    const { estimate } = await import('../plan/estimate.ts');
    const request = { settings, state: 'started' as const, prune: [], wishes: [] };
    const { summary, userFiles = [] } = await estimate(request, io, { driver, how: 'set', name: undefined });
    return summary.blocked > 0 ? [] : userFiles;
  });
}

/** Whether the next service has a driver that can run and simulates nothing. */
async function hasRealDriver(io: Io, recorded: string | undefined, flag: string | undefined): Promise<boolean> {
  const { driver, warnings } = await nextDriver(io, recorded, flag);
  return driver !== undefined && driver !== 'simulated' && warnings.length === 0;
}

async function unlessRefused(files: () => Promise<UserFileChange[]>): Promise<UserFileChange[]> {
  return files().catch((error: unknown) => {
    if (error instanceof RdError) return [];
    throw error;
  });
}
