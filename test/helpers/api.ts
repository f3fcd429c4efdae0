import type { FastifyInstance } from 'fastify';
import { type ApiPorts, createApp } from '../../src/api/app.ts';
import { createTransientStore } from '../../src/api/routes/transient-settings.ts';
import { createClient } from '../../src/client/client.ts';
import type { HttpResponse, Transport } from '../../src/client/connection.ts';
import type { ServiceClient } from '../../src/client/contract.ts';
import { requestHeaders } from '../../src/client/http.ts';
import { proofOf } from '../../src/client/service-proof.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { RdError } from '../../src/errors.ts';
import type { Diagnostics } from '../../src/features/diagnostics/check.ts';
import type { Extensions } from '../../src/features/extensions/contract.ts';
import type { PortForwards } from '../../src/features/port-forwards/manager.ts';
import type { SafetySnapshots, Snapshots } from '../../src/features/snapshots/contract.ts';
import type { JsonObject } from '../../src/json.ts';
import { steadyClock, systemClock } from '../../src/os/clock.ts';
import { limitedLog } from '../../src/os/limited-log.ts';
import { clusterSpec, engineSpec, machineSpec, type Observed } from '../../src/plan/backend.ts';
import type { UserFileFacts } from '../../src/plan/user-files.ts';
import type { BackendState, Controllers, Desired, Power } from '../../src/reconcile/contract.ts';
import { createApplies } from '../../src/service/applies.ts';
import { createServiceEvents } from '../../src/service/events.ts';
import { createMetrics } from '../../src/service/metrics.ts';
import { createPlanner } from '../../src/service/planner.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { createDesiredStore, type DesiredStoreInput } from '../../src/state/desired-store.ts';
import { type SteppedClock, steppedClock } from './stepped-clock.ts';

/** What the scripted controllers report; tests change it. */
interface Script {
  backendState: BackendState;
  observed: Observed;
  /** Every desired state that was passed on. */
  desired: Desired[];
  /** What an observation does, and whether it succeeds; by default it succeeds. */
  look?: (signal: AbortSignal) => boolean | Promise<boolean>;
}

export interface TestApi {
  app: FastifyInstance;
  client: ServiceClient;
  script: Script;
  ports: ApiPorts;
  logged: { level: string; message: string; values?: Record<string, unknown> }[];
  stops: string[];
  /** What limits the lines about refused requests. */
  refusalClock: SteppedClock;
}

export interface TestApiOptions {
  portForwards?: PortForwards;
  /** None by default, as before the first engine. */
  extensions?: Extensions;
  snapshots?: Snapshots;
  resetBackend?: ApiPorts['resetBackend'];
  settings?: Settings;
  power?: Power;
  lockedBy?: string;
  locks?: JsonObject;
  driver?: ApiPorts['driver'];
  platform?: Platform;
  allowHosts?: string[];
  /** No token is valid by default. */
  checkToken?: ApiPorts['tokens']['check'];
  persist?: DesiredStoreInput['persist'];
  versions?: readonly string[];
  backendLocked?: boolean;
  userFiles?: UserFileFacts;
}

const HOME = '/home/of/the/test';
export const PASSWORD = 'a-password-of-the-test';

/** A service without a cluster. */
const noForwards: PortForwards = {
  ensure: () => Promise.reject(new RdError('ERR_SETTING_UNSUPPORTED', 'the test driver has no cluster')),
  remove: async () => false,
  list: () => ({ kind: 'PortForwards', formatVersion: 1, supported: false, portForwards: [] }),
  close: async () => undefined,
};

/** Saves nothing and always succeeds. */
const NO_WATCH: ApiPorts['watch'] = {
  status: () => [],
  conditions: () => [],
  notices: () => [],
  plan: (plan) => plan,
  apply: () => Promise.reject(new Error('this service keeps no profiles')),
  release: async () => false,
};

const NO_SNAPSHOTS: Snapshots = {
  list: async () => [],
  create: async () => undefined,
  remove: async () => undefined,
  restore: async () => undefined,
  cancel: async () => false,
};

/** Makes no snapshots. */
export const NO_SAFETY_SNAPSHOTS: SafetySnapshots = {
  impossible: 'the driver of the test keeps nothing',
  estimate: async () => ({ bytes: 0, isLive: false }),
  around: () => Promise.reject(new Error('not possible')),
  whenDue: () => Promise.reject(new Error('not possible')),
  within: () => Promise.reject(new Error('not possible')),
  prune: () => undefined,
  close: async () => undefined,
};

/** Knows nothing and finds nothing. */
const NO_DIAGNOSTICS: Diagnostics = {
  categories: () => [],
  ids: () => undefined,
  report: () => ({ last_update: new Date(0).toISOString(), checks: [] }),
  runAll: async () => NO_DIAGNOSTICS.report(),
};

/** Everything off, as before the first start. */
function nothingRuns(): Observed {
  return {
    machine: { state: 'off' },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: { state: 'absent' },
  };
}

/** A backend that runs with exactly these settings. */
export function runsWith(settings: Settings): Observed {
  const engine = engineSpec(settings, DEFAULT_BLOCKS);
  const up = { state: 'running', spec: engine, endpoint: 'unix:///e.sock', version: '1', workload: {} } as const;
  return {
    machine: { state: 'on', spec: machineSpec(settings, DEFAULT_BLOCKS) },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' }, [engine.name]: up },
    cluster: settings.kubernetes.enabled
      ? {
          state: 'running',
          installedVersion: settings.kubernetes.version,
          spec: clusterSpec(settings, DEFAULT_BLOCKS),
          ready: true,
        }
      : { state: 'absent' },
  };
}

const noEngine = () => Promise.reject(new RdError('ERR_NOT_READY', 'Extension manager is not ready yet.'));
const noExtensions: Extensions = {
  ready: false,
  list: async () => ({}),
  install: noEngine,
  uninstall: noEngine,
  engineIsUp: () => undefined,
  idle: async () => undefined,
  close: async () => undefined,
};

/** The real app with scripted controllers, and the real client that talks to it without a port. */
export function startApi(options: TestApiOptions = {}): TestApi {
  const { platform = 'linux', driver = SIMULATED_INFO, power = 'started' } = options;
  const settings = options.settings ?? defaultSettings({ platform, arch: 'x64' });
  const script: Script = { backendState: 'STOPPED', observed: nothingRuns(), desired: [] };
  const initial: Desired = { settings, ...DEFAULT_BLOCKS, power, generation: 1 };
  const store = createDesiredStore({
    initial,
    locks: options.locks ?? {},
    persist: options.persist ?? (async () => undefined),
    onChange: (next) => script.desired.push(next),
  });
  const logged: TestApi['logged'] = [];
  const stops: string[] = [];
  const controllers = scripted(script, initial);
  const { portForwards = noForwards, extensions = noExtensions } = options;
  const log: ApiPorts['log'] = (level, message, values) =>
    logged.push({ level, message, ...(values ? { values } : {}) });
  const refusalClock = steppedClock();
  const applies = createApplies({
    controllers,
    portForwards,
    extensions,
    log,
    clock: systemClock,
    wasRolledBack: async () => false,
    onChange: () => undefined,
  });
  const counters = { settingsPuts: 0, settingsWrites: 0 };
  const host = { platform, arch: 'x64' };
  const kubernetesVersions = () => options.versions;
  const parts = {
    store,
    controllers,
    driver,
    host,
    kubernetesVersions,
    idle: false,
    portForwards,
    applies,
    counters,
    log,
  };
  const ports: ApiPorts = {
    credentials: { user: 'user', password: PASSWORD },
    tokens: { check: options.checkToken ?? (async () => ({ kind: 'malformed' })) },
    allowHosts: options.allowHosts ?? [],
    ...parts,
    planner: createPlanner({
      ...parts,
      safetySnapshots: NO_SAFETY_SNAPSHOTS,
      clock: systemClock,
      home: HOME,
      measured: () => [],
      foresee: () => [],
      ...(options.lockedBy === undefined ? {} : { lockedBy: options.lockedBy }),
    }),
    watch: NO_WATCH,
    isBackendLocked: async () => options.backendLocked ?? false,
    isLockedByOther: async () => false,
    requestStop: async (reason) => void stops.push(reason),
    snapshots: options.snapshots ?? NO_SNAPSHOTS,
    resetBackend: options.resetBackend ?? (async () => undefined),
    userFiles: {
      report: () => ({ offBecause: 'this is a test', files: [] }),
      conditions: () => [],
      userFiles: async () => options.userFiles,
      retry: async () => false,
      idle: async () => undefined,
    },
    onStatus: () => () => undefined,
    events: createServiceEvents({ history: { entries: [], dropped: 0 }, generation: 1, now: Date.now }),
    clock: systemClock,
    refusals: limitedLog(log, refusalClock),
    streams: new Set(),
    maintenance: () => undefined,
    transaction: () => undefined,
    checkFactoryReset: () => undefined,
    requestFactoryReset: async ({ cache }) =>
      void stops.push(`factory reset, ${cache ? 'downloads too' : 'without downloads'}`),
    transient: createTransientStore(platform, false),
    diagnostics: NO_DIAGNOSTICS,
    extensions,
    prove: (nonce) => proofOf({ password: PASSWORD, port: 6107 }, nonce),
    about: {
      version: '1.2.3',
      pid: 42,
      port: 6107,
      home: HOME,
      startedAt: '2030-01-01T00:00:00.000Z',
      driverReason: 'it was requested',
      notices: [],
    },
    history: { entries: async () => [] },
    layers: {
      platform,
      builtIn: defaultSettings({ platform, arch: 'x64' }),
      settingsFile: '/home/of/the/test/config/settings.json',
      looked: [],
    },
    metrics: createMetrics({
      now: steadyClock.now,
      sources: () => ({
        status: controllers.status,
        streams: () => 0,
        version: '1.2.3',
        driver: driver.name,
        startedAt: '2030-01-01T00:00:00.000Z',
      }),
    }),
  };
  const app = createApp(ports);
  const connection = {
    host: '127.0.0.1',
    port: 6107,
    user: 'user',
    password: PASSWORD,
    foreign: false,
    reached: { by: 'word' },
  } as const;
  return { app, client: createClient(connection, injectTransport(app)), script, ports, logged, stops, refusalClock };
}

function scripted(script: Script, initial: Desired): Controllers {
  return {
    desire: (next) => script.desired.push(next),
    wake: () => undefined,
    renumber: () => undefined,
    observed: () => script.observed,
    status: () => ({
      power: initial.power,
      generation: initial.generation,
      observedGeneration: initial.generation,
      converged: true,
      backendState: script.backendState,
      conditions: [],
      ...script.observed,
      phases: [],
      counters: { steps: 0, restarts: 0, resets: 0, failures: 0 },
    }),
    look: async (signal) => script.look?.(signal) ?? true,
    firstLook: async () => undefined,
    waitingFor: () => 'machine start is in progress',
    failure: () => undefined,
    quiesce: () => Promise.reject(new Error('not in this script')),
    onChange: () => () => undefined,
    close: async () => undefined,
  };
}

/** Passes the requests of a client to an app in this process. */
function injectTransport(app: FastifyInstance): Transport {
  return async (connection, request): Promise<HttpResponse> => {
    const response = await app.inject({
      method: request.method as 'GET',
      url: request.path,
      headers: { Host: `${connection.host}:${connection.port}`, ...requestHeaders(connection, request) },
      ...(request.body === undefined ? {} : { payload: request.body }),
    });
    return {
      status: response.statusCode,
      statusText: response.statusMessage,
      headers: response.headers as HttpResponse['headers'],
      body: response.rawPayload,
    };
  };
}
