import { storedSettings } from '../../../src/client/offline.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { RdError } from '../../../src/errors.ts';
import type { UserFileChange } from '../../../src/plan/user-files.ts';
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
  try {
    const host = hostOf(io);
    const { settings, driver: recorded } = await storedSettings(
      homeOf(io),
      host.platform,
      host,
      await policiesOf(io, host),
    );
    const { driver } = await nextDriver(io, recorded, flag);
    if (driver === undefined || driver === 'simulated') return [];
    const { previewChanges } = await import('../../../src/features/host-integration/parts.ts');
    const { foreseen } = await previewChanges(targets);
    const { pathManagementStrategy, autoStart } = settings.application;
    return [...foreseen.path[pathManagementStrategy], ...(autoStart ? foreseen.autostart.on : [])];
  } catch (error) {
    if (error instanceof RdError) return [];
    throw error;
  }
}
