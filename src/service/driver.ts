import { join } from 'node:path';
import type { Driver } from '../drivers/driver.ts';
import { chooseDriver, driverNamed } from '../drivers/index.ts';
import { RdError } from '../errors.ts';
import { defined } from '../json.ts';
import { setAside } from '../os/atomic-file.ts';
import { makeDirectory } from '../os/directory.ts';
import type { LogFile } from '../os/log-file.ts';
import type { Environment } from '../os/user-directories.ts';
import type { Places } from '../state/places.ts';
import { loadState, type ServiceState } from '../state/state-file.ts';

/** Milliseconds that a start waits for the list of cluster versions. */
const VERSIONS_LIMIT = 2_000;

/** The user's choice of driver. */
export interface DriverChoice {
  /** The value of `--driver`. */
  driver?: string;
  env: Environment;
}

/**
 * Reads the last service's state. An unusable file is set aside only if the user names the driver again, because a different driver would start
 * without the images and volumes of the recorded one.
 */
export async function readStoredState(
  { stateFile }: Places,
  { driver, env }: DriverChoice,
  notices: string[],
): Promise<ServiceState | undefined> {
  const loaded = await loadState(stateFile);
  if (loaded.kind === 'loaded') return loaded.state;
  if (loaded.kind === 'missing') return undefined;
  if (driver || env.RDCTL_DRIVER) {
    const movedTo = await setAside(stateFile, Date.now());
    notices.push(`The state file was not usable and was set aside as ${movedTo}.`);
    return undefined;
  }
  throw new RdError('ERR_IO', `the state file ${stateFile}, which records the driver, is not usable`, {
    advice: 'Start once with --driver and the driver used before; the file is then set aside.',
  });
}

/** Throws for an unknown driver name, before anything is changed. */
export function checkDriverName({ driver, env }: DriverChoice): void {
  const name = driver ?? env.RDCTL_DRIVER;
  if (name) driverNamed(name);
}

/** Chooses and opens the driver. `reason` is a clause that says why it was chosen. */
export async function openDriver(
  { driver: named, env }: DriverChoice,
  state: Pick<ServiceState, 'driver'> | undefined,
  places: Places,
  log: LogFile,
): Promise<{ driver: Driver; reason: string }> {
  const requested = named ?? env.RDCTL_DRIVER;
  const { factory, reason } = await chooseDriver({
    env,
    ...defined({ requested }),
    ...(state === undefined ? {} : { recorded: state.driver }),
  });
  const directory = join(places.state, 'drivers', factory.name);
  await makeDirectory(directory);
  const driver = await factory.open({ directory, logs: places.logs, log: log.write, now: Date.now, env });
  return { driver, reason };
}

/** Returns the cluster versions for the validation of `kubernetes.version`; undefined if the list does not arrive in time. */
export async function clusterVersions(driver: Driver, log: LogFile): Promise<readonly string[] | undefined> {
  try {
    return await driver.cluster?.versions(AbortSignal.timeout(VERSIONS_LIMIT));
  } catch (error) {
    log.write('warn', 'the list of cluster versions is unknown', { error });
    return undefined;
  }
}
