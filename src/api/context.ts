import type { Driver, DriverInfo } from '../drivers/driver.ts';
import type { Diagnostics } from '../features/diagnostics/check.ts';
import type { Extensions } from '../features/extensions/contract.ts';
import type { PortForwards } from '../features/port-forwards/manager.ts';
import type { Snapshots } from '../features/snapshots/contract.ts';
import type { JsonObject } from '../json.ts';
import type { Plan, PlanRequest } from '../plan/change.ts';
import type { LayerFacts } from '../plan/layers.ts';
import type { UserFileFacts } from '../plan/user-files.ts';
import type { Controllers } from '../reconcile/contract.ts';
import type { ApplyWork, StatusDocument } from '../reconcile/status-document.ts';
import type { Platform } from '../settings/field.ts';
import type { DesiredStore } from '../state/desired-store.ts';

type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** Constant message, variable values. */
export type Log = (level: LogLevel, message: string, values?: Record<string, unknown>) => void;

/** Everything that the routes may touch, given by the composition root. */
export interface ApiContext {
  credentials: { user: string; password: string };
  /** Names beside `localhost` and IP literals that the Host header may hold. */
  allowHosts: readonly string[];
  store: DesiredStore;
  controllers: Controllers;
  driver: DriverInfo & Pick<Driver, 'access' | 'diskBytes' | 'published'>;
  host: { platform: Platform; arch: string; osVersion?: string };
  /** Exact versions that the cluster driver offers; `undefined` while they are not known, or there is no cluster. */
  kubernetesVersions(): readonly string[] | undefined;
  /** The backend stays off as long as this service lives, whatever is wished for. */
  idle: boolean;
  /** True while the lock file of a snapshot operation exists. */
  isBackendLocked(): Promise<boolean>;
  /** Begins the orderly stop. Resolves once everybody who looks for the service of this home can see that it is about to end. */
  requestStop(reason: string): Promise<void>;
  /** Throws what speaks against a factory reset of these places. */
  checkFactoryReset(request: { cache: boolean }): void;
  /** Begins the orderly stop, at the end of which everything of this installation is removed. `cache`: downloads too. */
  requestFactoryReset(request: { cache: boolean }): void;
  transient: TransientStore;
  diagnostics: Diagnostics;
  portForwards: PortForwards;
  extensions: Extensions;
  snapshots: Snapshots;
  /** The work of `PUT /v1/k8s_reset`; throws what the route answers. */
  resetBackend(mode: 'fast' | 'wipe'): Promise<void>;
  applies: Applies;
  /** Calls back whenever the status may have changed. Returns the function that ends it. */
  onStatus(listener: () => void): () => void;
  /** Functions that end the answers that would otherwise last as long as the service. */
  streams: Set<() => void>;
  /** What is being done with the data of the backend: a sentence. */
  maintenance(): string | undefined;
  /** What became of files of the user outside of our directories. */
  hostIntegration(): NonNullable<StatusDocument['hostIntegration']>;
  /** What a plan has to know of those files; absent while none is touched. */
  userFiles(): Promise<UserFileFacts | undefined>;
  /** Of a nonce; see `src/client/service-proof.ts`. */
  prove(nonce: string): string;
  log: Log;
  about: ServiceFacts;
  layers: LayerFacts;
  counters: WriteCounters;
}

/** What is done after the settings of an apply are written. */
export interface Applies {
  /**
   * Reserves the port forwards and extensions of a plan; undefined if it has none. Until they are done or released no other plan is
   * carried out. Throws `ERR_BACKEND_LOCKED` while another one is.
   */
  reserve(plan: Plan, request: PlanRequest): ReservedSteps | undefined;
  /** Of the last one. */
  report(): ApplyWork | undefined;
}

/** Exactly one of the two is called. */
export interface ReservedSteps {
  begin(generation: number): void;
  release(): void;
}

/** Counted since the service started; a client that has nothing to change leaves them alone. */
interface WriteCounters {
  /** `PUT /v1/settings` that arrived, whatever became of them. */
  settingsPuts: number;
  /** Those that changed something. */
  settingsWrites: number;
}

/** What does not change while the service runs. */
interface ServiceFacts {
  version: string;
  pid: number;
  port: number;
  home: string;
  /** RFC 3339. */
  startedAt: string;
  /** Why the driver was chosen. */
  driverReason: string;
  notices: readonly string[];
  /** The file, or the registry key, that the locks came from. */
  lockedBy?: string;
  /** The one of the defaults profile, whether it was applied or not. */
  defaultsBy?: string;
}

/** The state of the windows of the compatible application; kept in memory only. */
export interface TransientSettings {
  noModalDialogs: boolean;
  preferences: { navItem: { current: string; currentTabs: Record<string, string> } };
}

export type TransientUpdate =
  /** One line for each problem; nothing is changed. */
  { kind: 'refused'; lines: string[] } | { kind: 'unchanged' } | { kind: 'changed'; settings: TransientSettings };

/** The record of this service, with its one way to change. */
export interface TransientStore {
  read(): TransientSettings;
  update(payload: JsonObject): TransientUpdate;
}
