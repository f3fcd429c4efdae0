import { arch } from 'node:os';
import { BACKEND_STOP_MS, homeService } from '../client/home-service.ts';
import type { Driver } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import { releaseContext } from '../features/host-integration/docker-context.ts';
import { logOutcomes } from '../features/host-integration/integration.ts';
import { integrationTargets } from '../features/host-integration/targets.ts';
import { systemClock } from '../os/clock.ts';
import { type LogFile, openLog } from '../os/log-file.ts';
import { type Environment, userHome } from '../os/user-directories.ts';
import { failureOf } from '../reconcile/backend-wait.ts';
import { createControllers } from '../reconcile/controllers.ts';
import { DEFAULT_BLOCKS } from '../settings/blocks.gen.ts';
import { defaultSettings } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { removeStaleConnectionFile } from '../state/connection-file.ts';
import { lockHolder, lockHome } from '../state/home-lock.ts';
import { requirePrivate } from '../state/ownership.ts';
import { places as homePlaces } from '../state/places.ts';
import { removeServiceSocket } from '../state/service-socket.ts';
import { driversToStop } from '../state/state-file.ts';
import { settleAndClose } from './backend.ts';
import { openDriver } from './driver.ts';

export interface StopLeftOptions {
  env: Environment;
  platform: Platform;
  /** Cancels the attempt; everything that has not stopped by then keeps running. */
  signal: AbortSignal;
  /** Command that starts this tool. Without it, only our own directories are touched. */
  self?: readonly string[];
  /** Limit for stopping the backend in milliseconds; a minute by default. */
  limitMs?: number;
}

/**
 * Stops the backend that a killed service left running. It starts nothing and serves no requests, so it needs neither
 * settings nor profiles nor a port, and changes neither settings nor state. Resets the docker context if it was selected.
 * @throws RdError `ERR_ALREADY_RUNNING` while a service is alive; `ERR_DRIVER_FAILED` when the backend does not stop, which
 * leaves everything recorded as before; `ERR_HOME_MOVED` when the service was started under another path.
 */
export async function stopLeft({
  env,
  platform,
  signal,
  self = [],
  limitMs = BACKEND_STOP_MS,
}: StopLeftOptions): Promise<void> {
  const places = homePlaces(env, platform, userHome(env, platform));
  requirePrivate(places);
  await homeService(places);
  const previousHolder = await lockHolder(places.serviceLock);
  const lock = await lockHome(places.serviceLock, places.data);
  try {
    requirePrivate(places);
    for (const driver of await driversToStop(places)) await stopBackend(driver);
    await removeStaleConnectionFile(places.connectionFile, previousHolder?.pid);
    await removeServiceSocket(places);
    await lock.release();
  } finally {
    // Without effect after a release.
    await lock.leave();
  }

  async function stopBackend(name: string): Promise<void> {
    const log = await openLog(places.logs, 'info', () => undefined);
    try {
      // The backend belongs to the recorded driver, even if a new service would use another one.
      const { driver } = await openDriver({ env: { ...env, RDCTL_DRIVER: undefined } }, { driver: name }, places, log);
      await stopDriver(driver, log).finally(() => driver.release?.());
      const { simulated } = driver;
      const targets = integrationTargets({
        env,
        platform,
        homedir: userHome(env, platform),
        places,
        self,
        simulated,
      });
      const outcomes = 'offBecause' in targets ? [] : await releaseContext(targets);
      logOutcomes(outcomes, log);
    } finally {
      await log.close();
    }
  }

  async function stopDriver(driver: Driver, log: LogFile): Promise<void> {
    const settings = defaultSettings({ platform, arch: arch() });
    const controllers = createControllers({
      driver,
      desired: { settings, ...DEFAULT_BLOCKS, power: 'stopped', generation: 0 },
      clock: systemClock,
      random: Math.random,
      log: log.write,
    });
    const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    const status = await settleAndClose(controllers, limit, limitMs);
    if (status.backendState === 'STOPPED') return;
    if (driver.simulated && status.conditions.some(({ reason }) => reason === 'ObservationFailed')) {
      // The simulation's file is damaged, and nothing real runs.
      log.write('warn', 'the simulation was not stopped', { reason: failureOf(status) });
      return;
    }
    throw new RdError('ERR_DRIVER_FAILED', `programs left by the previous service do not stop: ${failureOf(status)}`, {
      advice: `Check the logs in ${places.logs}, and try again.`,
    });
  }
}
