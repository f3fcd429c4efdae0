import type { Driver, DriverInfo } from '../drivers/driver.ts';
import type { EventSource } from '../events/event-ring.ts';
import type { Diagnostics } from '../features/diagnostics/check.ts';
import type { Extensions } from '../features/extensions/contract.ts';
import type { PortForwards } from '../features/port-forwards/manager.ts';
import type { Snapshots } from '../features/snapshots/contract.ts';
import type { Resets } from '../features/snapshots/resets.ts';
import type { JsonObject } from '../json.ts';
import type { Clock } from '../os/clock.ts';
import type { LiveState, Plan, PlanRequest } from '../plan/change.ts';
import type { Author, HistoryEntry, Origin, StatedSource } from '../plan/history.ts';
import type { PlannedHow } from '../plan/kept.ts';
import type { LayerFacts } from '../plan/layers.ts';
import type { OnFailure } from '../plan/return.ts';
import type { UserFileFacts } from '../plan/user-files.ts';
import type { Condition, Controllers } from '../reconcile/contract.ts';
import type {
  ApplyReply,
  ApplyWork,
  KeptStatus,
  StatusDocument,
  TransactionReport,
} from '../reconcile/status-document.ts';
import type { Platform } from '../settings/field.ts';
import type { MaintenanceWindow } from '../settings/maintenance-window.ts';
import type { WatchRules } from '../settings/watch-rules.ts';
import type { DesiredStore } from '../state/desired-store.ts';
import type { TokenCheck } from '../state/tokens.ts';
import type { LimitedLog } from './limited-log.ts';

type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** Constant message, variable values. */
export type Log = (level: LogLevel, message: string, values?: Record<string, unknown>) => void;

/** What the routes use, provided by the composition root. */
export interface ApiContext {
  credentials: { user: string; password: string };
  /** The tokens of this home, as they are on the disk at this moment. */
  tokens: { check(presented: string): Promise<TokenCheck> };
  /** Names that the Host header may have, besides `localhost` and IP addresses. */
  allowHosts: readonly string[];
  store: DesiredStore;
  controllers: Controllers;
  driver: DriverInfo & Pick<Driver, 'access' | 'diskBytes' | 'published'>;
  host: { platform: Platform; arch: string; osVersion?: string };
  /** Versions that the cluster driver offers; `undefined` while unknown, or without a cluster. */
  kubernetesVersions(): readonly string[] | undefined;
  /** The backend stays off while this service runs, whatever the desired power. */
  idle: boolean;
  /** True while the lock file of a snapshot operation exists. */
  isBackendLocked(): Promise<boolean>;
  /** The lock file is that of another program. */
  isLockedByOther(): Promise<boolean>;
  /** Begins an orderly shutdown, by whom the history says. Resolves once clients that look for the service of this home can see that it is exiting. */
  requestStop(reason: string, by?: Author): Promise<void>;
  /** Throws if these directories must not be reset. */
  checkFactoryReset(request: { cache: boolean }): void;
  /** Begins to stop as `requestStop`, and ends by removing this installation. `cache`: downloads, too. */
  requestFactoryReset(request: { cache: boolean }): Promise<void>;
  transient: TransientStore;
  diagnostics: Diagnostics;
  portForwards: PortForwards;
  extensions: Extensions;
  snapshots: Snapshots;
  /** Carries out `PUT /v1/k8s_reset`, and throws its errors. */
  resetBackend: Resets;
  applies: Applies;
  /** The last apply that is undone if it fails. */
  transaction(): TransactionReport | undefined;
  planner: Planner;
  /** Everything that was changed, oldest first. Throws `ERR_IO`. */
  history: { entries(): Promise<HistoryEntry[]> };
  watch: Watch;
  /** Calls back whenever the status may have changed. Returns the unsubscribe function. */
  onStatus(listener: () => void): () => void;
  /** What happened, for `GET /v2/events`. */
  events: EventSource;
  /** Functions that end open event streams. */
  streams: Set<() => void>;
  /** The operation on the backend's data, such as a snapshot, as a sentence. */
  maintenance(): string | undefined;
  /** The user's files outside of our directories. */
  userFiles: UserFiles;
  /** The proof for a nonce; see `src/client/service-proof.ts`. */
  prove(nonce: string): string;
  log: Log;
  /** The same log, for lines about requests that are not carried out. */
  refusals: LimitedLog;
  clock: Clock;
  about: ServiceFacts;
  layers: LayerFacts;
  counters: WriteCounters;
  metrics: Metrics;
}

/** The user's files outside of our directories, which the service keeps in the desired state. */
interface UserFiles {
  report(): NonNullable<StatusDocument['hostIntegration']>;
  conditions(): Condition[];
  /** What plans need; undefined while no such file is touched. */
  userFiles(): Promise<UserFileFacts | undefined>;
  /** Tries again what could not be changed, and resolves when that is done; false when there is nothing of that kind. */
  retry(): Promise<boolean>;
  /** Resolves when what follows from the settings so far is done. */
  idle(): Promise<void>;
}

/** What the service counts and measures. */
export interface Metrics {
  /** Measures an answered request. `route`: its pattern. */
  request(labels: { method: string; route: string; status: string }, ms: number): void;
  /** All of it in the text format of Prometheus. */
  text(): Promise<string>;
}

/** What an apply wrote. */
type Written = Omit<ApplyReply, 'kind' | 'formatVersion'>;

/** See `PlanInput`. */
interface Observation {
  outdated?: string;
  userFiles?: UserFileFacts;
}

/** Who is to carry a plan out. */
export interface PlannedWriter {
  by: Author;
  /** Name of the kept profile that it updates. */
  kept?: string;
}

/** Plans desired states and carries them out. */
export interface Planner {
  /**
   * The request in canonical form. Locks and settings that the driver does not support are part of a plan, not errors.
   * @throws RdError `ERR_SETTINGS_INVALID` with every problem.
   */
  check(request: PlanRequest): PlanRequest;
  /** What a checked request changes now. `outdated`, `userFiles`: see `PlanInput`. */
  plan(request: PlanRequest, observation?: Observation): Plan;
  /** The same, with what it would make differ from kept profiles. For an apply, what they would set back at once is blocked. */
  planFor(request: PlanRequest, writer: PlannedWriter, observation?: Observation): Plan;
  /** The plan of a checked request with the snapshot that comes before a loss of data. */
  withCover(plan: Plan, request: PlanRequest, how: PlannedHow): Promise<Plan>;
  /** What plans are compared with now. */
  live(): LiveState;
  /**
   * Writes settings, machine block and power as one generation; port forwards and extensions follow. If the plan destroys data, a snapshot
   * is made first, unless the request declines it; `signal` cancels it. `onFailure`: what happens if the backend fails because of it.
   * @throws RdError `ERR_PLAN_STALE` unless `tag` is that of a plan made now, `ERR_BACKEND_LOCKED` while an earlier apply is
   *   running, `ERR_SETTINGS_INVALID`, `ERR_NO_SPACE` or `ERR_SNAPSHOT` without a snapshot, `ERR_CANCELLED` by the signal, or the error of a
   *   blocked change. Nothing was changed then.
   */
  write(
    request: PlanRequest,
    tag: string,
    by: Author,
    onFailure: OnFailure,
    sources?: readonly StatedSource[],
    signal?: AbortSignal,
  ): Promise<Written>;
}

/** Whose token a request was sent with. */
export interface TokenHolder {
  name: string;
  /** False once the token is revoked or has expired. */
  isValid(): Promise<boolean>;
}

/** How a profile is kept. */
export interface Keep {
  /** `metadata.name` */
  name: string;
  watch: WatchRules;
  maintenance?: MaintenanceWindow;
  /** Where the profile mentions a field, by path: `/home/me/team.yaml:7:5`. */
  places: Record<string, string>;
  /** See `SentKeep`. */
  whole?: PlanRequest;
  /** This apply does not wait for the window. */
  now?: boolean;
}

/** Kept profiles, and what differs from them. */
export interface Watch {
  status(): KeptStatus[];
  /** Empty while nothing is contested. */
  conditions(): Condition[];
  /** What a person should know, as sentences. */
  notices(): string[];
  /** The plan with what its window would defer now. */
  plan(plan: Plan, maintenance: MaintenanceWindow | undefined): Plan;
  /**
   * Keeps a profile in place of an earlier one of its name, and carries out the apply; what restarts waits for its window.
   * @throws RdError as `Planner.write` does, `ERR_PROFILE_INVALID` where another kept profile manages the same field,
   *   `ERR_CONSENT_NEEDED` where a window would destroy data. Nothing was kept or changed then.
   */
  apply(
    request: PlanRequest,
    tag: string,
    by: Author,
    keep: Keep,
    onFailure: OnFailure,
    sources?: readonly StatedSource[],
  ): Promise<Pick<ApplyReply, 'generation' | 'sent' | 'continues'>>;
  /** Ends the keeping; false where no profile of that name is kept. Throws `ERR_IO`; it is still kept then. */
  release(name: string): Promise<boolean>;
}

/** The steps of an apply after its settings are written. */
export interface Applies {
  /**
   * Reserves the port forwards and extensions of a plan; undefined if it has none. No other plan is carried out until
   * they are done or released. Throws `ERR_BACKEND_LOCKED` while another plan is in progress.
   */
  reserve(plan: Plan, request: PlanRequest): ReservedSteps | undefined;
  /** The last apply that had such steps. */
  report(): ApplyWork | undefined;
}

/** Exactly one of these is called. */
export interface ReservedSteps {
  /** `origin`: that of the plan. */
  begin(generation: number, origin: Origin): void;
  release(): void;
}

/** Counted since the service started. */
interface WriteCounters {
  /** `PUT /v1/settings` requests, successful or not. */
  settingsPuts: number;
  /** Writes that changed settings. */
  settingsWrites: number;
}

/** Facts that do not change while the service runs. */
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
  /** The file or registry key of the locked profile. */
  lockedBy?: string;
  /** The same of the defaults profile, whether it was applied or not. */
  defaultsBy?: string;
}

/** The window state of the compatible application; kept in memory only. */
export interface TransientSettings {
  noModalDialogs: boolean;
  preferences: { navItem: { current: string; currentTabs: Record<string, string> } };
}

export type TransientUpdate =
  /** One line per problem; nothing was changed. */
  { kind: 'refused'; lines: string[] } | { kind: 'unchanged' } | { kind: 'changed'; settings: TransientSettings };

/** The transient settings of this service. */
export interface TransientStore {
  read(): TransientSettings;
  update(payload: JsonObject): TransientUpdate;
}
