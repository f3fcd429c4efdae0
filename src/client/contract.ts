import type { JsonObject } from '../json.ts';
import type { ForwardKey, LiveState, Plan, PlanRequest, Target } from '../plan/change.ts';
import type { Deed } from '../plan/deed.ts';
import type { HistoryEntry, StatedAuthor } from '../plan/history.ts';
import type { PlannedHow, SentKeep, SentWindow } from '../plan/kept.ts';
import type { SettingLayers } from '../plan/layers.ts';
import type { OnFailure } from '../plan/rollback.ts';
import type { BackendState } from '../reconcile/contract.ts';
import type { ApplyReply, StatusDocument } from '../reconcile/status-document.ts';
import type { SettingPath } from '../settings/settings.gen.ts';
import type { Places } from '../state/places.ts';
import type { Connection, HttpRequest, HttpResponse } from './connection.ts';
import type { EventsRequest } from './event-stream.ts';

/** Settings as received. `etag` is absent when the server sends none. */
export interface SettingsReply {
  settings: JsonObject;
  /** The raw body, for printing. */
  text: string;
  etag?: string;
}

/** Answer to an accepted write. */
export interface WriteReply {
  /** A sentence that scripts match. */
  text: string;
  /** Version of the desired state after the write; absent on servers without versions. */
  generation?: number;
  etag?: string;
  /** Keys of the body that the server does not know and did not store. */
  ignoredKeys: string[];
}

/** Changes of a proposal that need a restart or reset, by dotted setting path. */
export type Proposal = Record<string, { current?: unknown; desired?: unknown; severity: 'restart' | 'reset' }>;

export interface BackendStateReply {
  vmState: BackendState;
  locked: boolean;
}

/** Sends requests to the one server that it was made for. Throws `RdError` for transport failures only. */
export interface Server {
  readonly connection: Connection;
  request(request: HttpRequest): Promise<HttpResponse>;
}

/** Reads and writes settings. */
export interface SettingsClient {
  /** Owner of these settings, for display: `the running service`. */
  readonly owner: string;
  settings(options?: CallOptions): Promise<SettingsReply>;
  locked(options?: CallOptions): Promise<JsonObject>;
  putSettings(body: JsonObject, options?: CallOptions & { ifMatch?: string }): Promise<WriteReply>;
  proposal(body: JsonObject, options?: CallOptions): Promise<Proposal>;
  /** Returns those of `paths` that the driver does not support, with these settings; none if the server does not tell. */
  unsupported(settings: JsonObject, paths: readonly SettingPath[], options?: CallOptions): Promise<readonly string[]>;
  /** Returns the layers of the settings. Absent if the server does not tell. */
  layers?(options?: CallOptions): Promise<SettingLayers>;
}

/** Plans changes and has them carried out. */
export interface PlanClient {
  plan(request: PlanRequest, options?: PlanOptions): Promise<Plan>;
  /** Returns a plan and the state that it was compared with. `deed` is absent if the server itself carries the plan out. */
  planWithLive(request: PlanRequest, options?: PlanOptions): Promise<{ plan: Plan; live: LiveState; deed?: Deed }>;
  /**
   * Has the service carry out a plan. `tag` is that of the approved plan. Throws `ERR_PLAN_STALE` when a plan made now would differ, and
   * `ERR_BACKEND_LOCKED` while an earlier apply is running; nothing has changed then.
   */
  apply(request: PlanRequest, tag: string, options?: ApplyCallOptions): Promise<ApplyReply>;
  /** Returns all recorded changes, oldest first. Absent if the server keeps no history. */
  history?(options?: CallOptions): Promise<HistoryEntry[]>;
  /** The state before the last apply of this tool. Present only if there is no history. */
  readonly previous?: PreviousState;
  /** Ends the keeping of a profile. Throws `ERR_NOT_FOUND` if none of that name is kept. Absent if the server keeps no profiles. */
  releaseKept?(name: string, options?: CallOptions): Promise<void>;
  addPortForward(forward: ForwardKey & { hostPort: number }, options?: CallOptions): Promise<void>;
  /** Removes a port forward. Idempotent: succeeds when there was none. */
  removePortForward(key: ForwardKey, options?: CallOptions): Promise<void>;
}

/** A state that is kept on this computer, one for each target. */
export interface PreviousState {
  /** Stores a state. `power` is `unmanaged` if the apply does not change it, so that going back does not either. Throws `ERR_IO`. */
  keep(
    where: Pick<Places, 'state'>,
    before: { target: Target; settings: JsonObject; power: PlanRequest['state'] },
    now: Date,
  ): Promise<void>;
  /**
   * Returns the request that restores the stored state. Throws `ERR_NOT_FOUND` when none is kept for the target, `ERR_WRONG_TARGET` for the state of
   * another release, and `ERR_IO` for an unusable file.
   */
  request(where: Pick<Places, 'state'>, target: Target): Promise<PlanRequest>;
}

/** Reads the status of the backend, starts and stops it. */
export interface LifecycleClient {
  status(options?: CallOptions): Promise<StatusDocument>;
  backendState(options?: CallOptions): Promise<BackendStateReply>;
  setBackendState(state: 'STARTED' | 'STOPPED', options?: CallOptions): Promise<WriteReply>;
  /** Shuts the service down. Returns the server's reply: `Shutting down.` */
  shutdown(options?: CallOptions): Promise<string>;
}

/** Receives events. Both members are absent if the server has no events. */
export interface EventClient {
  /** Reads events over one connection, until the service or the signal ends it. Throws `ERR_CONNECTION`, also when the heartbeats stop. */
  events?(request: EventsRequest): Promise<void>;
  /** Reads statuses over one connection: the current one, and one after every change. Ends and throws like `events`. */
  watch?(onStatus: (status: StatusDocument) => void, signal: AbortSignal): Promise<void>;
}

/**
 * The typed API of our service or of another application. Every method throws `RdError`, also for error replies, unless it says otherwise. A function
 * takes only the part that it uses.
 */
export interface Client extends Server, SettingsClient, PlanClient, LifecycleClient, EventClient {
  /** Set for another application, which must not be changed unless the user names it. */
  readonly foreign?: true;
}

/** A client of our service, with the members that another application may lack. */
export type ServiceClient = Client & Required<Pick<Client, 'layers' | 'history' | 'releaseKept' | keyof EventClient>>;

export interface CallOptions {
  timeoutMs?: number;
  signal?: AbortSignal;
}

interface ApplyCallOptions extends CallOptions {
  author?: StatedAuthor;
  /** Whether the service undoes a change that makes the backend fail; `return`, a rollback, by default. */
  onFailure?: OnFailure;
  /** Set to have the service keep the profile. */
  keep?: SentKeep;
}

export interface PlanOptions extends CallOptions {
  /** Extra milliseconds that the service may wait for an observation. */
  waitMs?: number;
  /** The window that restarts wait for. */
  maintenance?: SentWindow;
  /** Origin of the write; `apply` by default. */
  how?: PlannedHow;
  /** Name of the kept profile that the apply updates. */
  kept?: string;
}
