import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { release, totalmem } from 'node:os';
import { withOfferedVersion } from '../profiles/policies/interpretation.ts';
import { createApp } from './api/app.ts';
import type { ApiContext } from './api/context.ts';
import { createDesiredStore } from './api/desired-store.ts';
import { bindListener, type Listener } from './api/listener.ts';
import { createTransientStore } from './api/transient-settings.ts';
import type { Reached } from './client/connection.ts';
import { homeService } from './client/home-service.ts';
import { proofOf } from './client/service-proof.ts';
import { RdError } from './errors.ts';
import { PRODUCT } from './product.ts';
import { systemClock } from './reconcile/clock.ts';
import { createControllers } from './reconcile/controllers.ts';
import { firstLook } from './reconcile/first-look.ts';
import { createApplies } from './service/applies.ts';
import { createBackendData } from './service/backend-data.ts';
import { stopBackend } from './service/backend-end.ts';
import { createServiceDiagnostics } from './service/diagnostics.ts';
import { checkDriverName, clusterVersions, openDriver, storedState } from './service/driver.ts';
import { serviceExtensions } from './service/extensions.ts';
import { createPendingReset } from './service/factory-reset.ts';
import { createHostIntegration, statusOf } from './service/host-integration.ts';
import { initialSettings } from './service/initial-settings.ts';
import { createMaintenance, IDLE } from './service/maintenance.ts';
import type { RunningService, ServiceOptions } from './service/options.ts';
import { serviceLayers, servicePolicies } from './service/policies.ts';
import { openPortForwards } from './service/port-forwards.ts';
import { recoverBackend } from './service/recover-backend.ts';
import type { Settings } from './settings/settings.gen.ts';
import { adoptPlaces, refuseRunning } from './storage/adoption.ts';
import { backendLock } from './storage/backend-lock.ts';
import { noteFailedStart, noteProgress } from './storage/background-log.ts';
import { removeConnectionFile, removeStaleConnectionFile, writeConnectionFile } from './storage/connection-file.ts';
import { sweepDrafts } from './storage/drafts.ts';
import { checkPlaces } from './storage/factory-reset.ts';
import { lockHome, sweepLock } from './storage/home-lock.ts';
import { keepPlace } from './storage/home-move.ts';
import { ioError } from './storage/io-error.ts';
import { lockStanding } from './storage/lock-place.ts';
import { type LogFile, openLog } from './storage/log-file.ts';
import { requirePrivate } from './storage/ownership.ts';
import { identityOf, type Places, places } from './storage/places.ts';
import { fillReserve } from './storage/reserve.ts';
import { saveSettings } from './storage/settings-file.ts';
import { makeServiceSocketPlace, removeServiceSocket } from './storage/socket-place.ts';
import { type SettingsHost, startupSettings } from './storage/startup-settings.ts';
import { saveState } from './storage/state-file.ts';
import { type Undo, unwind } from './storage/teardown.ts';
import { userHome } from './storage/user-home.ts';

/** Milliseconds: how long a start waits for the first look at the backend. */
const FIRST_LOOK_LIMIT = 5_000;

/**
 * Runs the service until it is stopped: the one composition root. What cannot be begun is undone before the error is thrown.
 * @throws RdError when a service already runs for this home, the port is taken, no driver can run, or a file is in the way.
 */
export async function runService(options: ServiceOptions): Promise<RunningService> {
  const undo: Undo[] = [];
  try {
    return await start(options, undo);
  } catch (error) {
    await unwind(undo, () => undefined);
    await noteFailedStart(
      places(options.env, options.platform, userHome(options.env, options.platform)),
      error,
      Date.now(),
    );
    throw error;
  }
}

async function start(options: ServiceOptions, undo: Undo[]): Promise<RunningService> {
  const { env, platform } = options;
  const here = places(env, platform, userHome(env, platform));
  checkDriverName(options);
  requirePrivate(here);
  const adopted = await adoptPlaces(here, { adopt: options.adopt ?? false, now: Date.now() });
  // What an earlier service did not stop is still to be stopped, also when this one does not get that far.
  let backendStopped = (await homeService(here)).kind !== 'left';
  const copied = lockStanding(here.serviceLock) === 'copied';
  const lock = await lockHome(here.serviceLock, here.data);
  const place = keepPlace(here.serviceLock, [here.data, here.config, here.logs, here.state, here.cache]);
  undo.push(['place', async () => place.end()]);
  undo.push(['lock', () => (backendStopped ? lock.release() : lock.leave())]);
  // What was not there before could have been made by another user meanwhile, in a directory like /tmp.
  requirePrivate(here);
  await refuseRunning(here);
  // Until ours is written, what an earlier service left there would lead to ours, with another password.
  await removeStaleConnectionFile(here.connectionFile, undefined);
  // It leads to the service of the home that this one was copied from.
  if (copied) await rm(here.connectionFile, { force: true });
  await fillReserve(here.state);
  const reset = createPendingReset(here);
  undo.push(['factory reset', () => reset.perform(backendStopped, () => integration)]);
  const notices: string[] = [...adopted];
  const log = await openLog(here.logs, 'info', (error) => notices.push(`The log cannot be written: ${error.message}.`));
  undo.push(['log', () => log.close()]);
  for (const failure of await sweepDrafts(here, Date.now())) log.write('warn', failure.message);
  await sweepLock(here.applyLock).catch((error: unknown) => log.write('warn', 'the lock stays', { error }));
  // Scripts of drop-in mode know one port; nobody looks for a service that only works on data.
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

  const host: SettingsHost = { platform, arch: process.arch, osRelease: release(), memoryBytes: totalmem() };
  const state = await storedState(here, options, notices);
  const policies = await servicePolicies(options, host);
  const { driver, reason } = await openDriver(options, state, here, log);
  undo.push(['driver', async () => driver.release?.()]);
  const recovered = await recoverBackend({ ...here, kept: driver.keeps });
  notices.push(...recovered.notices);
  const startup = await startupSettings(here, policies, host, Date.now());
  const { firstRun } = startup;
  notices.push(...startup.notices);
  const versions = await clusterVersions(driver, log);
  const kubernetesVersions = () => versions;
  const stored = withOfferedVersion(startup.settings, policies, { firstRun, versions, warnings: notices });
  const settings = initialSettings(stored, options.settings, {
    driver,
    host,
    kubernetesVersions,
    locks: startup.locks,
  });
  const initial = {
    settings,
    power: options.power === 'keep' ? (state?.power ?? 'started') : options.power,
    // Grows with every start: a crash between the files of a write then never gives one number to two states.
    generation: (state?.generation ?? 0) + 1,
  };
  await saveState(here.stateFile, { driver: driver.name, power: initial.power, generation: initial.generation });
  if (startup.unsaved || settings !== startup.settings) {
    const previous = startup.fileIsGarbled ? undefined : here.previousSettingsFile;
    await saveSettings(here.settingsFile, previous, settings);
  }
  const layers = await serviceLayers(policies, here, { host, firstRun, now: Date.now() });
  setLogLevel(log, settings);
  for (const notice of notices) log.write('warn', notice);

  const backend = backendLock(here.backendLock);
  const { found } = recovered;
  const atFirst = found?.hold ?? (options.idle ? IDLE : undefined);
  const controllers = createControllers({
    driver,
    desired: atFirst ? { ...initial, hold: atFirst } : initial,
    clock: systemClock,
    random: Math.random,
    log: log.write,
    check: place.check,
  });
  let stopping: Promise<void> | undefined;
  const store = createDesiredStore({
    initial,
    locks: startup.locks,
    async persist(next, before) {
      if (stopping) throw new RdError('ERR_NOT_READY', 'the service is shutting down');
      await saveState(here.stateFile, { driver: driver.name, power: next.power, generation: next.generation });
      if (next.settings !== before.settings) {
        await saveSettings(here.settingsFile, here.previousSettingsFile, next.settings);
      }
    },
    onChange(next) {
      setLogLevel(log, next.settings);
      integration.settingsChanged(next);
      diagnostics.settingsChanged();
      maintenance.desire(next);
    },
  });
  const maintenance = createMaintenance({
    lock: backend,
    controllers,
    desired: () => store.snapshot().desired,
    clock: systemClock,
    log: log.write,
    ...(found ? { found } : {}),
    ...(options.idle ? { idle: IDLE } : {}),
  });
  // It ends after the backend, because it gives back the docker context of an engine that has stopped.
  const integration = createHostIntegration({ ...options, here, settings, driver, log });
  undo.push(['host integration', () => integration.close()]);
  backendStopped = false;
  undo.push([
    'backend',
    async () => {
      backendStopped = await stopBackend(controllers, store, log, options.stopLimitMs);
    },
  ]);
  undo.push(['maintenance', () => maintenance.close()]);
  const notice = (text: string) => void notices.push(text);
  const data = createBackendData({
    ...{ here, driver, host, store, maintenance, controllers, recovered, notice },
    log: log.write,
  });
  undo.push(['snapshots', () => data.close()]);
  const portForwards = await openPortForwards(here, driver, { controllers, log: log.write, notice });
  undo.push(['port forwards', () => portForwards.close()]);

  const credentials = { user: 'user', password: randomBytes(32).toString('base64url') };
  let ended = () => {};
  const stopped = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const failed = (what: string, error: unknown) => log.write('error', 'stopping failed', { what, error });
  let known = Promise.resolve();
  const stop = (why: string): Promise<void> => {
    if (!stopping) {
      log.write('info', 'stopping', { reason: why });
      // First: whoever wants a service that stays waits for the end of this one, which may be minutes away.
      known = lock.update({ ending: true }).catch((error: unknown) => failed('lock', error));
      stopping = known.then(() => unwind(undo, failed));
      stopping.then(ended);
    }
    return stopping;
  };
  const diagnostics = createServiceDiagnostics({
    platform,
    env,
    ...(options.self ? { self: options.self } : {}),
    data: here.data,
    secretFiles: [here.settingsFile, here.previousSettingsFile, here.connectionFile],
    binDirectory: here.bin,
    contextName: identityOf(here).dockerContext,
    api: { port, asked: options.port !== undefined },
    hasCluster: driver.hasCluster,
    integration,
    settings: () => store.snapshot().desired.settings,
    kubernetesVersions,
    controllers,
    clock: systemClock,
    log: log.write,
  });
  undo.push(['diagnostics', () => diagnostics.close()]);
  const extensions = await serviceExtensions({
    ...(policies.locked ? { lockedBy: policies.locked.source } : {}),
    here,
    platform,
    driver,
    controllers,
    store,
    log: log.write,
  });
  undo.push(['extensions', () => extensions.close()]);
  const listeners = new Set<() => void>();
  const statusChanged = () => {
    for (const listener of listeners) listener();
  };
  controllers.onChange(statusChanged);
  const applies = createApplies({
    ...{ controllers, extensions, portForwards, clock: systemClock },
    log: log.write,
    onChange: statusChanged,
  });
  undo.push(['applies', async () => applies.close()]);
  const context: ApiContext = {
    credentials,
    allowHosts: options.allowHosts,
    store,
    controllers,
    driver,
    host: { platform, arch: process.arch, osVersion: release() },
    kubernetesVersions,
    extensions,
    idle: options.idle ?? false,
    isBackendLocked: () => backend.isHeld(),
    requestStop(why) {
      void stop(why);
      return known;
    },
    hostIntegration: () => statusOf(integration),
    userFiles: () => integration.userFiles(),
    applies,
    onStatus(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    streams,
    maintenance: () => maintenance.doing(),
    checkFactoryReset: ({ cache }) => checkPlaces(here, cache),
    requestFactoryReset(request) {
      reset.request(request);
      void stop('a factory reset was asked for');
    },
    diagnostics,
    transient: createTransientStore(platform, options.noModalDialogs ?? false),
    portForwards,
    snapshots: data.snapshots,
    resetBackend: data.reset,
    prove: (nonce) => proofOf({ password: credentials.password, port }, nonce),
    log: log.write,
    about: {
      version: PRODUCT.version,
      pid: process.pid,
      port,
      home: here.data,
      startedAt: new Date().toISOString(),
      driverReason: reason,
      notices,
      ...(policies.locked ? { lockedBy: policies.locked.source } : {}),
      ...(policies.defaults ? { defaultsBy: policies.defaults.source } : {}),
    },
    layers,
    counters: { settingsPuts: 0, settingsWrites: 0 },
  };
  await createApp(context, listener.server).ready();
  // A plan asked for before the drivers were would count what survived the last service as not running.
  await firstLook(controllers, AbortSignal.timeout(FIRST_LOOK_LIMIT));
  // Before the file: who reads that finds the socket.
  const reached = await listenAtSocket(here, listener, notice);
  await writeConnectionFile(here.connectionFile, { ...credentials, port, pid: process.pid });
  await lock.update({ announced: true });
  integration.follow(controllers);
  diagnostics.start();
  await noteProgress(here, `${PRODUCT.name} ${PRODUCT.version} listens on port ${port}`, Date.now());
  log.write('info', 'service started', {
    version: PRODUCT.version,
    port,
    home: here.data,
    driver: driver.name,
    reason,
  });
  return {
    port,
    connection: {
      host: '127.0.0.1',
      port,
      ...credentials,
      file: here.connectionFile,
      pid: process.pid,
      foreign: false,
      reached,
    },
    stopped,
    stop,
    resetSummary: reset.summary,
    backendStopped: () => backendStopped,
  };
}

/** Without a socket callers ask for a proof on the port; that is slower, and no less safe. */
async function listenAtSocket(here: Places, listener: Listener, notice: (text: string) => void): Promise<Reached> {
  let path: string | undefined;
  try {
    path = await makeServiceSocketPlace(here);
    if (path === undefined) return { by: 'word' };
    await listener.listenAt(path);
    return { by: 'socket', path };
  } catch (error) {
    const { message } = ioError('listen at', path ?? 'its socket', error);
    notice(`The service has no Unix socket and is reached through its port alone: ${message}.`);
    return { by: 'word' };
  }
}

function setLogLevel(log: LogFile, settings: Settings): void {
  log.setLevel(settings.application.debug ? 'debug' : 'info');
}
