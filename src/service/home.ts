import { rm } from 'node:fs/promises';
import { bindListener, type Listener } from '../api/listener.ts';
import { homeService } from '../client/home-service.ts';
import { messageOf } from '../errors.ts';
import type { FollowingIntegration } from '../features/host-integration/integration.ts';
import { keepPlace } from '../os/directory-identity.ts';
import { type LogFile, openLog } from '../os/log-file.ts';
import { userHome } from '../os/user-directories.ts';
import { PRODUCT } from '../product.ts';
import { removeConnectionFile, removeStaleConnectionFile } from '../state/connection-file.ts';
import { adoptPlaces, refuseRunning } from '../state/drop-in.ts';
import { checkPlaces, type ResetSummary, factoryReset as removeFiles } from '../state/factory-reset.ts';
import { lockHome, lockStanding, sweepLock } from '../state/home-lock.ts';
import { sweepDrafts } from '../state/own-files.ts';
import { requirePrivate } from '../state/ownership.ts';
import { type Places, places } from '../state/places.ts';
import { fillReserve } from '../state/reserve.ts';
import { removeServiceSocket } from '../state/service-socket.ts';
import { checkDriverName } from './driver.ts';
import type { ServiceOptions, Undo } from './options.ts';

/** The home of this service: locked, logged, and with a port. */
export interface Home {
  here: Places;
  lock: Awaited<ReturnType<typeof lockHome>>;
  log: LogFile;
  listener: Listener;
  /** Sentences for the status. */
  notices: string[];
  /** Functions that end the answers that would otherwise last as long as the service. */
  streams: Set<() => void>;
  reset: PendingReset;
  ending: Ending;
  /** Throws when the directories are no longer where they were. */
  check: ReturnType<typeof keepPlace>['check'];
}

/**
 * Takes the home for this service: places, lock, log, port.
 * @throws RdError when a service already runs for it, the port is taken, or another user could write there.
 */
export async function openHome(options: ServiceOptions, undo: Undo[]): Promise<Home> {
  const { env, platform } = options;
  const here = places(env, platform, userHome(env, platform));
  checkDriverName(options);
  requirePrivate(here);
  const adopted = await adoptPlaces(here, { adopt: options.adopt ?? false, now: Date.now() });
  // What an earlier service did not stop is still to be stopped, even if this one does not get that far.
  const ending: Ending = { backendStopped: (await homeService(here)).kind !== 'left' };
  const copied = (await lockStanding(here.serviceLock)) === 'copied';
  const lock = await lockHome(here.serviceLock, here.data);
  const place = keepPlace(here.serviceLock, [here.data, here.config, here.logs, here.state, here.cache]);
  undo.push(['place', async () => place.end()]);
  undo.push(['lock', () => (ending.backendStopped ? lock.release() : lock.leave())]);
  // What was not there before could have been made by another user meanwhile, in a directory like /tmp.
  requirePrivate(here);
  await refuseRunning(here);
  // Until ours is written, a connection file left there would lead to our port, with another password.
  await removeStaleConnectionFile(here.connectionFile, undefined);
  // It leads to the service of the home that this one was copied from.
  if (copied) await rm(here.connectionFile, { force: true });
  await fillReserve(here.state);
  const reset = createPendingReset(here);
  undo.push(['factory reset', () => reset.perform(ending)]);
  const notices: string[] = [...adopted];
  const log = await openLog(here.logs, 'info', (error) => notices.push(`Cannot write the log: ${error.message}.`));
  undo.push(['log', () => log.close()]);
  for (const failure of await sweepDrafts(here, Date.now())) log.write('warn', failure.message);
  await sweepLock(here.applyLock).catch((error: unknown) => log.write('warn', 'the lock stays', { error }));
  // Scripts of drop-in mode know one port. Nobody looks for a service that only works on data.
  const fixed = here.dropIn === undefined || options.idle ? undefined : PRODUCT.defaultPort;
  const listener = await bindListener(options.port ?? fixed);
  const { port } = listener;
  undo.push(['socket', () => removeServiceSocket(here)]);
  undo.push(['listener', () => listener.close()]);
  const streams = new Set<() => void>();
  undo.push([
    'streams',
    async () => {
      for (const end of streams) end();
    },
  ]);
  await lock.update({ port, ...(options.idle ? { idle: true } : {}) });
  undo.push([
    'connection file',
    async () => {
      await lock.update({ announced: false });
      await removeConnectionFile(here.connectionFile, process.pid, port);
    },
  ]);
  return { here, lock, log, listener, notices, streams, reset, ending, check: place.check };
}

/** What the end of a service depends on, as far as it has come. */
interface Ending {
  /** False while something may run, so that the lock stays behind for the next service to find it. */
  backendStopped: boolean;
  /** Set once there is one. */
  integration?: FollowingIntegration;
}

/** What was asked for over the API. */
interface FactoryResetRequest {
  /** Downloads go too. */
  cache: boolean;
}

/** A factory reset at the end of a service: it happens when everything else has stopped, and before the lock is let go. */
interface PendingReset {
  request(request: FactoryResetRequest): void;
  /** Does what was asked for, if anything was. Never throws: what failed is in the summary. */
  perform(ending: Ending): Promise<void>;
  /** Absent: none was asked for, or it has not happened yet. */
  summary(): ResetSummary | undefined;
}

/** Without a stopped backend nothing is removed: what finds it again would be lost. */
function createPendingReset(here: Places): PendingReset {
  let wanted: FactoryResetRequest | undefined;
  let summary: ResetSummary | undefined;

  const refused = (reason: string): ResetSummary => ({
    removed: [],
    kept: [],
    failed: [{ path: here.data, reason }],
  });

  return {
    request(request) {
      wanted = request;
    },
    summary: () => summary,
    async perform({ backendStopped, integration }) {
      if (!wanted) return;
      if (!backendStopped) {
        summary = refused('the backend did not stop; nothing was removed');
        return;
      }
      try {
        checkPlaces(here, wanted.cache);
        const failed = ((await integration?.undo()) ?? []).filter(({ state }) => state === 'failed');
        const done = await removeFiles(here, wanted);
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
