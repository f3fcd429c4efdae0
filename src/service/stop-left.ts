import { arch } from 'node:os';
import { BACKEND_STOP_MS, homeService } from '../client/home-service.ts';
import type { Driver } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import { releaseContext } from '../features/host-integration/docker-context.ts';
import { logOutcomes } from '../features/host-integration/integration.ts';
import { integrationTargets } from '../features/host-integration/targets.ts';
import { troubleOf } from '../features/snapshots/backend-wait.ts';
import { systemClock } from '../os/clock.ts';
import { type LogFile, openLog } from '../os/log-file.ts';
import { type Environment, userHome } from '../os/user-directories.ts';
import { createControllers } from '../reconcile/controllers.ts';
import { defaultSettings } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { removeStaleConnectionFile } from '../state/connection-file.ts';
import { lockHolder, lockHome } from '../state/home-lock.ts';
import { requirePrivate } from '../state/ownership.ts';
import { places } from '../state/places.ts';
import { removeServiceSocket } from '../state/service-socket.ts';
import { loadState, type ServiceState } from '../state/state-file.ts';
import { openDriver } from './driver.ts';

export interface StopLeftOptions {
  env: Environment;
  platform: Platform;
  /** Ends the attempt; what was not stopped by then runs on. */
  signal: AbortSignal;
  /** Command that starts this tool; without it nothing outside of our directories is touched. */
  self?: readonly string[];
  /** Milliseconds until the backend must have stopped; a minute unless told. */
  limitMs?: number;
}

/**
 * Stops what a service left running that was killed. It needs no settings, no profiles and no port, because nothing is started and
 * nobody is listened to, and it changes neither settings nor state. A docker context that was
 * selected is given back.
 * @throws RdError `ERR_ALREADY_RUNNING` while a service lives, `ERR_DRIVER_FAILED` when it does not stop; the next to look then
 * finds the same as before. `ERR_HOME_MOVED` when it was started somewhere else.
 */
export async function stopLeft({
  env,
  platform,
  signal,
  self = [],
  limitMs = BACKEND_STOP_MS,
}: StopLeftOptions): Promise<void> {
  const here = places(env, platform, userHome(env, platform));
  requirePrivate(here);
  await homeService(here);
  const last = await lockHolder(here.serviceLock);
  const lock = await lockHome(here.serviceLock, here.data);
  try {
    requirePrivate(here);
    const loaded = await loadState(here.stateFile);
    if (loaded.kind === 'loaded') await stopBackend(loaded.state);
    await removeStaleConnectionFile(here.connectionFile, last?.pid);
    await removeServiceSocket(here);
    await lock.release();
  } catch (error) {
    await lock.leave();
    throw error;
  } finally {
    // Changes nothing once it is released.
    await lock.leave();
  }

  async function stopBackend(state: ServiceState): Promise<void> {
    const log = await openLog(here.logs, 'info', () => undefined);
    try {
      // What it ran is of the driver that is recorded, whichever one a new service would be asked to have.
      const { driver } = await openDriver({ env: { ...env, RDCTL_DRIVER: undefined } }, state, here, log);
      await stopDriver(driver, state, log).finally(() => driver.release?.());
      const { simulated } = driver;
      const targets = integrationTargets({ env, platform, homedir: userHome(env, platform), here, self, simulated });
      const found = 'offBecause' in targets ? [] : await releaseContext(targets);
      logOutcomes(found, log);
    } finally {
      await log.close();
    }
  }

  async function stopDriver(driver: Driver, { generation }: ServiceState, log: LogFile): Promise<void> {
    const settings = defaultSettings({ platform, arch: arch() });
    const controllers = createControllers({
      driver,
      desired: { settings, power: 'stopped', generation },
      clock: systemClock,
      random: Math.random,
      log: log.write,
    });
    const status = await controllers.quiesce(AbortSignal.any([signal, AbortSignal.timeout(limitMs)]));
    const closed = new AbortController();
    await Promise.race([controllers.close(), systemClock.sleep(limitMs, closed.signal)]);
    closed.abort();
    if (status.backendState === 'STOPPED') return;
    throw new RdError('ERR_DRIVER_FAILED', `programs left by the previous service do not stop: ${troubleOf(status)}`, {
      advice: `Check the logs in ${here.logs}, and try again.`,
    });
  }
}
