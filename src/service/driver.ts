import { join } from 'node:path';
import type { Driver } from '../drivers/driver.ts';
import { chooseDriver, driverNamed } from '../drivers/index.ts';
import { RdError } from '../errors.ts';
import { setAside } from '../os/atomic-file.ts';
import { makeDirectory } from '../os/directory.ts';
import type { LogFile } from '../os/log-file.ts';
import type { Environment } from '../os/user-directories.ts';
import type { Places } from '../state/places.ts';
import { loadState, type ServiceState } from '../state/state-file.ts';

/** Milliseconds that a start waits for the list of cluster versions. */
const VERSIONS_LIMIT = 2_000;

/** What a person said about the driver. */
export interface DriverWish {
  /** `--driver`. */
  driver?: string;
  env: Environment;
}

/**
 * What the last service left behind. A file that cannot be used held the choice of driver: only a person can make it again,
 * because another driver would begin without the images and volumes of the first.
 */
export async function storedState(
  { stateFile }: Places,
  { driver, env }: DriverWish,
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

/** Refuses a name that no driver has, before anything is touched. */
export function checkDriverName({ driver, env }: DriverWish): void {
  const name = driver ?? env.RDCTL_DRIVER;
  if (name) driverNamed(name);
}

/** Chooses and opens the driver. `reason` is a clause. */
export async function openDriver(
  { driver: named, env }: DriverWish,
  state: ServiceState | undefined,
  here: Places,
  log: LogFile,
): Promise<{ driver: Driver; reason: string }> {
  const requested = named ?? env.RDCTL_DRIVER;
  const { factory, reason } = await chooseDriver({
    env,
    ...(requested === undefined ? {} : { requested }),
    ...(state === undefined ? {} : { recorded: state.driver }),
  });
  const directory = join(here.state, 'drivers', factory.name);
  await makeDirectory(directory);
  const driver = await factory.open({ directory, logs: here.logs, log: log.write, now: Date.now, env });
  return { driver, reason };
}

/** Known versions make the validation of `kubernetes.version` exact; a list that does not come in time is done without. */
export async function clusterVersions(driver: Driver, log: LogFile): Promise<readonly string[] | undefined> {
  try {
    return await driver.cluster?.versions(AbortSignal.timeout(VERSIONS_LIMIT));
  } catch (error) {
    log.write('warn', 'the list of cluster versions is unknown', { error });
    return undefined;
  }
}
