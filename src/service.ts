import { randomBytes } from 'node:crypto';
import { release } from 'node:os';
import { type ApiPorts, createApp } from './api/app.ts';
import { createTransientStore } from './api/routes/transient-settings.ts';
import type { Reached } from './client/connection.ts';
import { proofOf } from './client/service-proof.ts';
import { steadyClock, systemClock } from './os/clock.ts';
import { ioError } from './os/io-error.ts';
import { userHome } from './os/user-directories.ts';
import type { Author } from './plan/history.ts';
import { PRODUCT } from './product.ts';
import { type Backend, openBackend } from './service/backend.ts';
import { serviceEvent } from './service/events.ts';
import { type Features, openFeatures } from './service/features.ts';
import { type Home, openHome } from './service/home.ts';
import type { Listener } from './service/listener.ts';
import { createMetrics, type ServiceMetrics } from './service/metrics.ts';
import { type RunningService, type ServiceOptions, type Undo, undoAll } from './service/options.ts';
import type { WatchFeed } from './service/watch/watch.ts';
import { writeConnectionFile } from './state/connection-file.ts';
import { noteProgress, recordFailedStart } from './state/drop-in.ts';
import { checkPlaces } from './state/factory-reset.ts';
import { places as homePlaces, type Places } from './state/places.ts';
import { makeServiceSocketPlace } from './state/service-socket.ts';
import { checkToken } from './state/tokens.ts';

/** How long a start waits for the first observation of the backend, in milliseconds. */
const FIRST_LOOK_LIMIT = 5_000;

/**
 * Runs the service until it is stopped: the composition root. A failed start is undone before the error is thrown.
 * @throws RdError when a service already runs for this home, the port is in use, no driver can run, or a file is unusable.
 */
export async function runService(options: ServiceOptions): Promise<RunningService> {
  const undo: Undo[] = [];
  try {
    return await start(options, undo);
  } catch (error) {
    await undoAll(undo, () => undefined);
    await recordFailedStart(
      homePlaces(options.env, options.platform, userHome(options.env, options.platform)),
      error,
      Date.now(),
    );
    throw error;
  }
}

/** Opens the parts in order. Each pushes its closing onto `undo`; they close in reverse order. */
async function start(options: ServiceOptions, undo: Undo[]): Promise<RunningService> {
  const home = await openHome(options, undo);
  const { places, lock, log, listener, notices, reset, ending } = home;
  const { port } = listener;
  const life = lifeOf(home, undo);
  const about = { version: PRODUCT.version, startedAt: new Date().toISOString() };
  const metrics = createMetrics({
    now: steadyClock.now,
    sources: () => ({ ...about, driver: driver.name, status: controllers.status, streams: () => home.streams.size }),
  });
  /** A transaction that the last service left may go back before there is a watch. */
  const early: Parameters<WatchFeed['written']>[] = [];
  const backend = await openBackend(options, home, undo, {
    isStopping: life.isStopping,
    onDesired(next, what, written) {
      if (what === 'state') features?.diagnostics.settingsChanged();
      if (features) features.watch.written(next, written);
      else early.push([next, written]);
    },
    onWritten: ({ how }) => metrics.wrote(how),
    mayDelete: (installed) => features?.data.mayDelete(installed) ?? false,
    isRestoreUnproven: () => features?.data.isRestoreUnproven(),
  });
  const { controllers, driver, integration } = backend;
  undo.push(['metrics', async () => unfollow()]);
  const unfollow = metrics.follow(controllers);
  let features: Features | undefined;
  features = await openFeatures(options, home, backend, undo);
  for (const write of early) features.watch.written(...write);
  const credentials = { user: 'user', password: randomBytes(32).toString('base64url') };
  const ports = apiPorts(options, { home, backend, features, life, credentials, metrics, about });
  await createApp(ports, listener.server).ready();
  undo.push(['end of events', async () => backend.events.emit(serviceEvent('stopping'))]);
  // Before the first observation, a plan would miss what survived the last service.
  await controllers.firstLook(AbortSignal.timeout(FIRST_LOOK_LIMIT));
  // Before the connection file, so that its readers find the socket.
  const reached = await listenAtSocket(places, listener, (text) => void notices.push(text));
  await writeConnectionFile(places.connectionFile, { ...credentials, port, pid: process.pid });
  await lock.update({ announced: true });
  // After the connection file, which a caller reads once it is answered here.
  if (options.inherited !== undefined) await acceptInherited(options.inherited, listener, notices);
  integration.follow(controllers);
  features.diagnostics.start();
  features.watch.start();
  await noteProgress(places, `${PRODUCT.name} ${PRODUCT.version} listens on port ${port}`, Date.now());
  log.write('info', 'service started', {
    version: PRODUCT.version,
    port,
    home: places.data,
    driver: driver.name,
    reason: backend.reason,
  });
  return {
    port,
    connection: {
      host: '127.0.0.1',
      port,
      ...credentials,
      file: places.connectionFile,
      pid: process.pid,
      revision: PRODUCT.revision,
      foreign: false,
      reached,
    },
    stopped: life.stopped,
    stop: (why) => life.stop(why, { how: 'power' }),
    resetSummary: reset.summary,
    backendStopped: () => ending.backendStopped,
  };
}

/** The shutdown of the service. */
interface Life {
  isStopping(): boolean;
  /** Closes everything. Idempotent; resolves with `stopped`. `by`: as in the history, which has no stop without it. */
  stop(why: string, by?: Author): Promise<void>;
  /** Begins to stop. Resolves once nobody can reach this service any more, and the next one can be started. */
  requestStop(why: string, by?: Author): Promise<void>;
  stopped: Promise<void>;
}

function lifeOf({ withdraw, log, ending }: Home, undo: Undo[]): Life {
  let stopping: Promise<void> | undefined;
  let withdrawn = Promise.resolve();
  let ended = () => {};
  const stopped = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const failed = (what: string, error: unknown) => log.write('error', 'stopping failed', { what, error });
  const stop = (why: string, by?: Author): Promise<void> => {
    if (!stopping) {
      if (by) ending.by = by;
      log.write('info', 'stopping', { reason: why });
      // First, because the rest may take minutes, and the next service waits for this one to exit.
      withdrawn = withdraw(failed);
      stopping = withdrawn.then(() => undoAll(undo, failed));
      stopping.then(ended);
    }
    return stopping;
  };
  return {
    isStopping: () => stopping !== undefined,
    stop,
    requestStop(why, by) {
      void stop(why, by);
      return withdrawn;
    },
    stopped,
  };
}

interface Parts {
  home: Home;
  backend: Backend;
  features: Features;
  life: Life;
  credentials: ApiPorts['credentials'];
  metrics: ServiceMetrics;
  /** `startedAt`: RFC 3339. */
  about: { version: string; startedAt: string };
}

/** Provides the ports of the API from the parts of the service. */
function apiPorts(options: ServiceOptions, parts: Parts): ApiPorts {
  const { home, backend, features, life, credentials, metrics, about } = parts;
  const { places, log, refusals, listener, notices, reset, streams } = home;
  const { port } = listener;
  const { driver, policies, integration, maintenance } = backend;
  return {
    credentials,
    tokens: { check: (presented) => checkToken(places.tokens, presented, Date.now()) },
    allowHosts: options.allowHosts,
    store: backend.store,
    controllers: backend.controllers,
    driver,
    host: { platform: options.platform, arch: process.arch, osVersion: release() },
    kubernetesVersions: backend.kubernetesVersions,
    isBackendLocked: backend.isLocked,
    isLockedByOther: backend.isLockedByOther,
    requestStop: life.requestStop,
    userFiles: integration,
    streams,
    events: backend.events,
    clock: systemClock,
    maintenance: () => maintenance.doing(),
    transaction: backend.transactions.report,
    checkFactoryReset: ({ cache }) => checkPlaces(places, cache),
    requestFactoryReset(request) {
      reset.request(request);
      return life.requestStop('a factory reset was requested');
    },
    transient: createTransientStore(options.platform, options.noModalDialogs ?? false),
    ...features,
    snapshots: features.data.snapshots,
    resetBackend: features.data.reset,
    prove: (nonce) => proofOf({ password: credentials.password, port }, nonce),
    log: log.write,
    refusals,
    about: {
      ...about,
      pid: process.pid,
      port,
      home: places.data,
      driverReason: backend.reason,
      notices,
      ...(policies.locked ? { lockedBy: policies.locked.source } : {}),
      ...(policies.defaults ? { defaultsBy: policies.defaults.source } : {}),
    },
    layers: backend.layers,
    history: backend.history,
    metrics,
  };
}

/** Only the first use depends on it, so a failure is no reason not to run. */
async function acceptInherited(descriptor: number, listener: Listener, notices: string[]): Promise<void> {
  await listener.listenOn(descriptor).catch((cause: unknown) => {
    const { message } = ioError('listen on', 'the socket of the service manager', cause);
    notices.push(`The service is not reached through the socket that started it: ${message}.`);
  });
}

/** Without a socket, callers request a proof on the port, which is slower and equally safe. */
async function listenAtSocket(places: Places, listener: Listener, notice: (text: string) => void): Promise<Reached> {
  let path: string | undefined;
  try {
    path = await makeServiceSocketPlace(places);
    if (path === undefined) return { by: 'word' };
    await listener.listenAt(path);
    return { by: 'socket', path };
  } catch (error) {
    const { message } = ioError('listen at', path ?? 'its socket', error);
    notice(`The service has no Unix socket and is reached through its port alone: ${message}.`);
    return { by: 'word' };
  }
}
