import { randomBytes } from 'node:crypto';
import { access, mkdir } from 'node:fs/promises';
import { homedir, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { createApp } from './api/app.ts';
import type { ApiContext } from './api/context.ts';
import type { DesiredStore } from './api/desired-store.ts';
import { createDesiredStore } from './api/desired-store.ts';
import { bindListener } from './api/listener.ts';
import { decideUpdate } from './api/settings-update.ts';
import type { Connection } from './client/connection.ts';
import type { Driver } from './drivers/driver.ts';
import { chooseDriver } from './drivers/index.ts';
import { RdError } from './errors.ts';
import type { JsonObject } from './json.ts';
import { unprotected } from './plan/fail-closed.ts';
import { PRODUCT } from './product.ts';
import { systemClock } from './reconcile/clock.ts';
import type { Controllers } from './reconcile/contract.ts';
import { createControllers } from './reconcile/controllers.ts';
import { firstLook } from './reconcile/first-look.ts';
import type { Platform } from './settings/field.ts';
import type { Settings } from './settings/settings.gen.ts';
import { SCHEMA_VERSION } from './settings/settings.gen.ts';
import { removeConnectionFile, writeConnectionFile } from './storage/connection-file.ts';
import { lockHome } from './storage/home-lock.ts';
import type { LogFile } from './storage/log-file.ts';
import { openLog } from './storage/log-file.ts';
import type { Environment, Places } from './storage/places.ts';
import { places } from './storage/places.ts';
import type { PolicyPlace } from './storage/policies.ts';
import { policyPlaces } from './storage/policies.ts';
import { saveSettings } from './storage/settings-file.ts';
import type { SettingsHost, StartupSettings } from './storage/startup-settings.ts';
import { startupSettings } from './storage/startup-settings.ts';
import type { ServiceState } from './storage/state-file.ts';
import { loadState, saveState } from './storage/state-file.ts';
import type { Undo } from './storage/teardown.ts';
import { unwind } from './storage/teardown.ts';

/** Milliseconds: how long a stop waits for the backend, and a start for the list of cluster versions and the first look. */
const BACKEND_STOP_LIMIT = 60_000;
const VERSIONS_LIMIT = 2_000;
const FIRST_LOOK_LIMIT = 5_000;

export interface ServiceOptions {
  env: Environment;
  platform: Platform;
  /** Name of the driver, where the choice of the first start is still to be made. */
  driver?: string;
  /** `keep`: as it was when the last service ended; `started` on the first start. */
  power: 'keep' | 'started' | 'stopped';
  /** This port alone; otherwise the first free one. */
  port?: number;
  /** Names beside `localhost` and IP literals that callers may use. */
  allowHosts: string[];
  /** Partial settings of the current version, applied before anything starts. */
  settings?: JsonObject;
  /** Where deployment profiles are, instead of the places of the platform. */
  policyDirectories?: readonly PolicyPlace[];
  /** How long a stop waits for the backend, in milliseconds; a minute unless told. */
  stopLimitMs?: number;
}

export interface RunningService {
  port: number;
  connection: Connection;
  /** Resolves when everything has stopped, whoever asked for it. */
  stopped: Promise<void>;
  /** Stops cluster, engine and machine, then the API. Resolves with `stopped`; calling it again changes nothing. */
  stop(reason: string): Promise<void>;
}

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
    throw error;
  }
}

async function start(options: ServiceOptions, undo: Undo[]): Promise<RunningService> {
  const { env, platform } = options;
  const here = places(env, platform, homedir());
  const lock = await lockHome(here.serviceLock, here.data);
  undo.push(['lock', () => lock.release()]);
  const notices: string[] = [];
  const log = await openLog(here.logs, 'info', (error) => notices.push(`The log cannot be written: ${error.message}.`));
  undo.push(['log', () => log.close()]);
  const listener = await bindListener(options.port);
  const { port } = listener;
  undo.push(['listener', () => listener.close()]);
  await lock.update({ port });
  undo.push(['connection file', () => removeConnectionFile(here.connectionFile, process.pid, port)]);

  const host: SettingsHost = { platform, arch: process.arch, osRelease: release(), memoryBytes: totalmem() };
  const state = await storedState(here, options);
  const profiles = options.policyDirectories ?? policyPlaces(env, platform, homedir());
  const startup = await startupSettings(here, profiles, host, Date.now());
  notices.push(...startup.notices);
  if (platform !== 'linux') notices.push('Deployment profiles are not read on this platform yet.');
  const { driver, reason } = await openDriver(options, state, here, log);
  const versions = await clusterVersions(driver, log);
  const kubernetesVersions = () => versions;
  const settings = initialSettings(options, startup, { driver, host, kubernetesVersions, locks: startup.locks });
  const initial = {
    settings,
    power: options.power === 'keep' ? (state?.power ?? 'started') : options.power,
    // Grows with every start: a crash between the files of a write then never gives one number to two states.
    generation: (state?.generation ?? 0) + 1,
  };
  await saveState(here.stateFile, { driver: driver.name, power: initial.power, generation: initial.generation });
  if (startup.unsaved || settings !== startup.settings) {
    await saveSettings(here.settingsFile, here.previousSettingsFile, settings);
  }
  setLogLevel(log, settings);
  for (const notice of notices) log.write('warn', notice);

  const controllers = createControllers({
    driver,
    desired: initial,
    clock: systemClock,
    random: Math.random,
    log: log.write,
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
      controllers.desire(next);
    },
  });
  undo.push(['backend', () => stopBackend(controllers, store, log, options.stopLimitMs)]);

  const credentials = { user: 'user', password: randomBytes(32).toString('base64url') };
  let ended = () => {};
  const stopped = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const stop = (why: string): Promise<void> => {
    if (!stopping) {
      log.write('info', 'stopping', { reason: why });
      stopping = unwind(undo, (what, error) => log.write('error', 'stopping failed', { what, error }));
      stopping.then(ended);
    }
    return stopping;
  };
  const context: ApiContext = {
    credentials,
    allowHosts: options.allowHosts,
    store,
    controllers,
    driver,
    host: { platform, arch: process.arch, osVersion: release() },
    kubernetesVersions,
    isBackendLocked: () => exists(here.backendLock),
    requestStop: (why) => void stop(why),
    log: log.write,
    about: {
      version: PRODUCT.version,
      pid: process.pid,
      home: here.data,
      startedAt: new Date().toISOString(),
      driverReason: reason,
      notices,
      ...(startup.lockedBy === undefined ? {} : { lockedBy: startup.lockedBy }),
    },
    counters: { settingsPuts: 0, settingsWrites: 0 },
  };
  await createApp(context, listener.server).ready();
  // A plan asked for before the drivers were would count what survived the last service as not running.
  await firstLook(controllers, AbortSignal.timeout(FIRST_LOOK_LIMIT));
  await writeConnectionFile(here.connectionFile, { ...credentials, port, pid: process.pid });
  log.write('info', 'service started', {
    version: PRODUCT.version,
    port,
    home: here.data,
    driver: driver.name,
    reason,
  });
  return {
    port,
    connection: { host: '127.0.0.1', port, ...credentials, file: here.connectionFile, foreign: false },
    stopped,
    stop,
  };
}

/** What the last service left behind. Without it, and with settings there, the choice of driver is a person's to make. */
async function storedState(here: Places, { driver, env }: ServiceOptions): Promise<ServiceState | undefined> {
  const loaded = await loadState(here.stateFile, Date.now());
  if (loaded.kind === 'loaded') return loaded.state;
  if (loaded.kind === 'missing' || driver || env.RDCTL_DRIVER) return undefined;
  throw new RdError('ERR_IO', `the state file could not be used and was set aside as ${loaded.movedTo}`, {
    advice: 'It held the choice of driver: start once with --driver and the one that was used before.',
  });
}

async function openDriver(
  options: ServiceOptions,
  state: ServiceState | undefined,
  here: Places,
  log: LogFile,
): Promise<{ driver: Driver; reason: string }> {
  const { env } = options;
  const requested = options.driver ?? env.RDCTL_DRIVER;
  const { factory, reason } = await chooseDriver({
    env,
    ...(requested === undefined ? {} : { requested }),
    ...(state === undefined ? {} : { recorded: state.driver }),
  });
  const directory = join(here.state, 'drivers', factory.name);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const driver = await factory.open({ directory, logs: here.logs, log: log.write, now: Date.now, env });
  return { driver, reason };
}

/** Known versions make the validation of `kubernetes.version` exact; a list that does not come in time is done without. */
async function clusterVersions(driver: Driver, log: LogFile): Promise<readonly string[] | undefined> {
  try {
    return await driver.cluster?.versions(AbortSignal.timeout(VERSIONS_LIMIT));
  } catch (error) {
    log.write('warn', 'the list of cluster versions is not known', { error });
    return undefined;
  }
}

/** The settings to begin with, after those of the caller. Throws rather than start without a protection that was asked for. */
function initialSettings(
  { settings: wanted }: ServiceOptions,
  { settings }: StartupSettings,
  around: Parameters<typeof decideUpdate>[2],
): Settings {
  const update = wanted && decideUpdate({ version: SCHEMA_VERSION, ...wanted }, settings, around);
  if (update?.kind === 'refused') {
    throw new RdError('ERR_SETTINGS_INVALID', update.message, { advice: 'Nothing was started or changed.' });
  }
  const chosen = update?.kind === 'changed' ? update.settings : settings;
  const [missing] = unprotected(chosen, around.driver);
  if (!missing) return chosen;
  const { name } = around.driver;
  throw new RdError(
    'ERR_SETTING_UNSUPPORTED',
    `${missing.path} is true, and the ${name} driver cannot enforce it: ${missing.reason}`,
    {
      advice: 'Set it to false in the settings file or the deployment profile, or use a driver that enforces it.',
    },
  );
}

function setLogLevel(log: LogFile, settings: Settings): void {
  log.setLevel(settings.application.debug ? 'debug' : 'info');
}

/** Stops what runs, for a bounded time. The wish for it to run stays on the disk, for the next start. */
async function stopBackend(
  controllers: Controllers,
  store: DesiredStore,
  log: LogFile,
  limitMs = BACKEND_STOP_LIMIT,
): Promise<void> {
  await store.idle();
  const { desired } = store.snapshot();
  controllers.desire({ ...desired, power: 'stopped', generation: desired.generation + 1 });
  const signal = AbortSignal.timeout(limitMs);
  const { backendState } = await controllers.quiesce(signal);
  if (backendState !== 'STOPPED') log.write('error', 'the backend did not stop', { backendState });
  const closed = new AbortController();
  await Promise.race([controllers.close(), systemClock.sleep(limitMs, closed.signal)]);
  closed.abort();
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
