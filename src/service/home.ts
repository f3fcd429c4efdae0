import { rm } from 'node:fs/promises';
import { homeService, mayRun, SERVICE_STOP_MS } from '../client/home-service.ts';
import { messageOf, RdError } from '../errors.ts';
import type { FollowingIntegration } from '../features/host-integration/integration.ts';
import { steadyClock } from '../os/clock.ts';
import { keepPlace } from '../os/directory-identity.ts';
import { type LimitedLog, limitedLog } from '../os/limited-log.ts';
import { type LogFile, openLog } from '../os/log-file.ts';
import { userHome } from '../os/user-directories.ts';
import type { Author } from '../plan/history.ts';
import { PRODUCT } from '../product.ts';
import { removeConnectionFile, removeStaleConnectionFile } from '../state/connection-file.ts';
import { adoptPlaces, refuseRunning } from '../state/drop-in.ts';
import { checkPlaces, type ResetSummary, factoryReset as removeFiles } from '../state/factory-reset.ts';
import { lockHolder, lockHome, sweepLock } from '../state/home-lock.ts';
import { lockStanding } from '../state/lock-standing.ts';
import { refuseNewerFiles } from '../state/newer-files.ts';
import { sweepDrafts } from '../state/own-files.ts';
import { requirePrivate } from '../state/ownership.ts';
import { places as homePlaces, type Places } from '../state/places.ts';
import { fillReserve } from '../state/reserve.ts';
import { removeServiceSocket } from '../state/service-socket.ts';
import { checkDriverName } from './driver.ts';
import { bindListener, type Listener } from './listener.ts';
import type { ServiceOptions, Undo } from './options.ts';

/** Milliseconds between checks whether the last service has exited. */
const ENDING_LOOK_MS = 50;

/** The home of this service: locked, logged, and with a port. */
export interface Home {
  places: Places;
  lock: Awaited<ReturnType<typeof lockHome>>;
  log: LogFile;
  refusals: LimitedLog;
  listener: Listener;
  /** Startup notices for the status, as sentences. */
  notices: string[];
  /** Functions that end open event streams. */
  streams: Set<() => void>;
  reset: PendingReset;
  /** Whether a backend of an earlier service may still be running. */
  adopts: boolean;
  ending: Ending;
  /**
   * Makes room for the next service: the lock says "ending", nothing accepts connections any more, and the connection file is gone. A failure is
   * reported and does not stop the rest.
   */
  withdraw(onFailure: (what: string, error: unknown) => void): Promise<void>;
  /** Throws when the directories have been moved. */
  check: ReturnType<typeof keepPlace>['check'];
}

/**
 * Opens the home for this service: directories, lock, log and port.
 * @throws RdError when a service already runs for it, the port is taken, or another user could write there.
 */
export async function openHome(options: ServiceOptions, undo: Undo[]): Promise<Home> {
  const { env, platform } = options;
  const places = homePlaces(env, platform, userHome(env, platform));
  checkDriverName(options);
  requirePrivate(places);
  const adopted = await adoptPlaces(places, { adopt: options.adopt ?? false, now: Date.now() });
  await waitForEnding(places, options);
  // A backend left by an earlier service must be stopped even if this start fails early.
  const found = await homeService(places);
  const ending: Ending = { backendStopped: found.kind !== 'left' };
  const copied = lockStanding(places.serviceLock) === 'copied';
  const lock = await lockHome(places.serviceLock, places.data);
  const place = keepPlace(places.serviceLock, [places.data, places.config, places.logs, places.state, places.cache]);
  undo.push(['place', async () => place.end()]);
  undo.push(['lock', () => (ending.backendStopped ? lock.release() : lock.leave())]);
  // Missing directories may have been created by another user meanwhile, for example in /tmp.
  requirePrivate(places);
  await refuseRunning(places);
  await refuseNewerFiles(places);
  // Until ours is written, a stale connection file could lead to our port, with another password.
  await removeStaleConnectionFile(places.connectionFile, undefined);
  // The copied file points to the service of the original home.
  if (copied) await rm(places.connectionFile, { force: true });
  await fillReserve(places.state);
  const reset = createPendingReset(places);
  undo.push(['factory reset', () => reset.perform(ending)]);
  const notices: string[] = [...adopted];
  const log = await openLog(places.logs, 'info', (error) => notices.push(`Cannot write the log: ${error.message}.`));
  undo.push(['log', () => log.close()]);
  const refusals = limitedLog(log.write, options.clock ?? steadyClock);
  undo.push(['refusals', async () => refusals.close()]);
  for (const failure of await sweepDrafts(places, Date.now())) log.write('warn', failure.message);
  await sweepLock(places.applyLock).catch((error: unknown) => log.write('warn', 'the lock stays', { error }));
  // In drop-in mode, scripts expect the default port; an idle service, which only works on data, does not need it.
  const fixed = places.dropIn === undefined || options.idle ? undefined : PRODUCT.defaultPort;
  const listener = await bindListener(options.port ?? fixed);
  const { port } = listener;
  undo.push(['socket', () => removeServiceSocket(places)]);
  undo.push(['listener', () => listener.close()]);
  const streams = new Set<() => void>();
  undo.push([
    'streams',
    async () => {
      for (const end of streams) end();
    },
  ]);
  const { version, revision } = PRODUCT;
  await lock.update({ port, version, revision, ...(options.idle ? { idle: true } : {}) });
  const forget = () => removeConnectionFile(places.connectionFile, process.pid, port);
  undo.push([
    'connection file',
    async () => {
      await lock.update({ announced: false });
      await forget();
    },
  ]);
  async function withdraw(onFailure: (what: string, error: unknown) => void): Promise<void> {
    // First, because a caller that finds no listener checks the lock.
    await lock.update({ ending: true }).catch((error: unknown) => onFailure('lock', error));
    listener.refuse();
    await forget().catch((error: unknown) => onFailure('connection file', error));
  }
  const adopts = mayRun(found);
  return {
    places,
    lock,
    log,
    refusals,
    listener,
    notices,
    streams,
    reset,
    adopts,
    ending,
    withdraw,
    check: place.check,
  };
}

/**
 * Waits for a service of this home that was asked to stop, as long as a stop may take.
 * @throws RdError `ERR_ALREADY_RUNNING` when it hangs, `ERR_CANCELLED` by the signal.
 */
async function waitForEnding(places: Places, { clock = steadyClock, signal, say }: ServiceOptions): Promise<void> {
  const since = clock.now();
  let known: number | undefined;
  for (;;) {
    const holder = await lockHolder(places.serviceLock);
    if (!holder?.alive || !holder.ending) return;
    const { pid } = holder;
    if (signal?.aborted) throw new RdError('ERR_CANCELLED', 'Nothing was started.');
    if (clock.now() - since >= SERVICE_STOP_MS) {
      throw new RdError(
        'ERR_ALREADY_RUNNING',
        `the last service for ${places.data} (pid ${pid}) was asked to stop but is still running after ${SERVICE_STOP_MS / 1000} s`,
        { advice: `Check the logs in ${places.logs}. To force it to exit, kill process ${pid}; then start again.` },
      );
    }
    if (known !== pid) say?.(`The last service (pid ${pid}) is ending; waiting for it to exit.`);
    known = pid;
    await clock.sleep(ENDING_LOOK_MS, signal);
  }
}

/** State that the shutdown depends on, updated as startup proceeds. */
interface Ending {
  /** False while the backend may run: the lock is then left behind, so that the next service finds the backend. */
  backendStopped: boolean;
  /** Author of the stop, for the history. */
  by?: Author;
  /** Set once the integration is open. */
  integration?: FollowingIntegration;
}

interface FactoryResetRequest {
  /** Whether downloads are removed, too. */
  cache: boolean;
}

/** A factory reset at the end of the service: after everything else has stopped, before the lock is released. */
interface PendingReset {
  request(request: FactoryResetRequest): void;
  /** Performs the requested reset, if any. Never throws: the summary lists failures. */
  perform(ending: Ending): Promise<void>;
  /** The result; undefined if no reset was requested, or it has not happened yet. */
  summary(): ResetSummary | undefined;
}

/** Creates a reset that removes nothing while the backend runs, because its records would be lost. */
function createPendingReset(places: Places): PendingReset {
  let requested: FactoryResetRequest | undefined;
  let summary: ResetSummary | undefined;

  const refused = (reason: string): ResetSummary => ({
    removed: [],
    kept: [],
    failed: [{ path: places.data, reason }],
  });

  return {
    request(request) {
      requested = request;
    },
    summary: () => summary,
    async perform({ backendStopped, integration }) {
      if (!requested) return;
      if (!backendStopped) {
        summary = refused('the backend did not stop; nothing was removed');
        return;
      }
      try {
        checkPlaces(places, requested.cache);
        const failed = ((await integration?.undo()) ?? []).filter(({ state }) => state === 'failed');
        const done = await removeFiles(places, requested);
        summary = {
          ...done,
          failed: [...failed.map(({ file, message = '' }) => ({ path: file, reason: message })), ...done.failed],
        };
      } catch (error) {
        summary = refused(messageOf(error));
      }
    },
  };
}
