import type { EventDocument } from '../events/event.ts';
import type { ForwardKey } from '../features/port-forwards/forward.ts';
import { isObject, type JsonObject, parseObject as parseObjectText } from '../json.ts';
import { steadyClock } from '../os/clock.ts';
import type { LiveState, Plan, PlanRequest } from '../plan/change.ts';
import type { HistoryEntry, StatedAuthor } from '../plan/history.ts';
import type { PlannedHow, SentKeep, SentWindow } from '../plan/kept.ts';
import type { SettingLayers } from '../plan/layers.ts';
import type { OnFailure } from '../plan/return.ts';
import type { BackendState } from '../reconcile/contract.ts';
import type { ApplyReply, StatusDocument } from '../reconcile/status-document.ts';
import type { Connection, HttpRequest, HttpResponse, Transport } from './connection.ts';
import { type EventsRequest, eventReader, type StreamMessage, silenceWatch, silentError } from './event-stream.ts';
import { httpTransport } from './http.ts';
import { isWebPage, notOurService, refusal } from './replies.ts';

/** Settings as read. `etag` is absent when the server sends none. */
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

/** What would restart, keyed by dotted setting path. */
export type Proposal = Record<string, { current?: unknown; desired?: unknown; severity: 'restart' | 'reset' }>;

interface BackendStateReply {
  vmState: BackendState;
  locked: boolean;
}

/**
 * The typed API. Every method throws `RdError`: `request` for transport failures only, the others also for error
 * replies.
 */
export interface Client {
  readonly connection: Connection;
  /** Another application, which speaks `/v1` only. */
  readonly foreign?: true;
  request(request: HttpRequest): Promise<HttpResponse>;
  settings(options?: CallOptions): Promise<SettingsReply>;
  locked(options?: CallOptions): Promise<JsonObject>;
  putSettings(body: JsonObject, options?: CallOptions & { ifMatch?: string }): Promise<WriteReply>;
  proposal(body: JsonObject, options?: CallOptions): Promise<Proposal>;
  backendState(options?: CallOptions): Promise<BackendStateReply>;
  setBackendState(state: 'STARTED' | 'STOPPED', options?: CallOptions): Promise<WriteReply>;
  /** Returns the server's reply: `Shutting down.` */
  shutdown(options?: CallOptions): Promise<string>;
  plan(request: PlanRequest, options?: PlanOptions): Promise<Plan>;
  /** The plan, and the state that it was compared with. */
  planWithLive(request: PlanRequest, options?: PlanOptions): Promise<{ plan: Plan; live: LiveState }>;
  /**
   * Has the service carry out a plan. `tag`: of the agreed plan. Throws `ERR_PLAN_STALE` when a plan made now would
   * differ, and `ERR_BACKEND_LOCKED` while an earlier apply is running; nothing has changed then.
   */
  apply(request: PlanRequest, tag: string, options?: ApplyCallOptions): Promise<ApplyReply>;
  /** Everything that was changed, oldest first. */
  history(options?: CallOptions): Promise<HistoryEntry[]>;
  addPortForward(forward: ForwardKey & { hostPort: number }, options?: CallOptions): Promise<void>;
  /** Idempotent: also succeeds when there was none. */
  removePortForward(key: ForwardKey, options?: CallOptions): Promise<void>;
  status(options?: CallOptions): Promise<StatusDocument>;
  /** Where the settings come from. */
  layers(options?: CallOptions): Promise<SettingLayers>;
  /**
   * Reads events over one connection, until the service or the signal ends it. Absent where the server has none. Throws `ERR_CONNECTION`
   * also when the heartbeats stop.
   */
  events?(request: EventsRequest): Promise<void>;
  /** The same for the status alone: now, and on every change. */
  watch?(onStatus: (status: StatusDocument) => void, signal: AbortSignal): Promise<void>;
}

export interface CallOptions {
  timeoutMs?: number;
  signal?: AbortSignal;
}

interface ApplyCallOptions extends CallOptions {
  author?: StatedAuthor;
  /** `return` where absent. */
  onFailure?: OnFailure;
  /** Has the service keep the profile. */
  keep?: SentKeep;
}

interface PlanOptions extends CallOptions {
  /** Extra time that the service may wait for an observation. */
  waitMs?: number;
  /** The window that what restarts waits for. */
  maintenance?: SentWindow;
  /** `apply` where absent. */
  how?: PlannedHow;
  /** Name of the kept profile that the apply updates. */
  kept?: string;
}

/** A client of the service at `connection`. */
export function createClient(connection: Connection, transport: Transport = httpTransport): Client {
  async function call(request: HttpRequest): Promise<HttpResponse> {
    const response = await transport(connection, request);
    const accepted = response.status >= 200 && response.status < 300;
    if (accepted && !isWebPage(response)) return response;
    throw refusal(connection, request, response);
  }
  async function object(request: HttpRequest): Promise<{ value: JsonObject; response: HttpResponse }> {
    const response = await call(request);
    return { value: parseObject(connection, request, response), response };
  }
  async function planned(
    request: PlanRequest,
    { waitMs, maintenance, how, kept, ...options }: PlanOptions,
    parameters: Record<string, string> = {},
  ): Promise<Plan & { live?: LiveState }> {
    const wait = waitMs === undefined ? {} : { waitMs: String(Math.round(waitMs)) };
    const query = new URLSearchParams({ ...wait, ...parameters });
    const path = query.size === 0 ? '/v2/plan' : `/v2/plan?${query}`;
    const { value } = await object({
      method: 'POST',
      path,
      body: JSON.stringify({ ...request, maintenance, how, kept }),
      ...options,
    });
    if (isDocument(value, 'Plan', PLAN_PARTS)) return value as unknown as Plan & { live?: LiveState };
    throw notOurService(connection, '/v2/plan returned no plan');
  }
  return {
    connection,
    request: (request) => transport(connection, request),
    async settings(options) {
      const { value, response } = await object({ method: 'GET', path: '/v1/settings', ...options });
      if (!looksLikeSettings(value)) throw notOurService(connection, '/v1/settings returned no settings');
      const { etag } = response.headers;
      return { settings: value, text: response.body.toString(), ...(etag === undefined ? {} : { etag }) };
    },
    async locked(options) {
      return (await object({ method: 'GET', path: '/v1/settings/locked', ...options })).value;
    },
    async putSettings(body, { ifMatch, ...options } = {}) {
      const headers = ifMatch === undefined ? {} : { headers: { 'If-Match': ifMatch } };
      return written(
        await call({ method: 'PUT', path: '/v1/settings', body: JSON.stringify(body), ...headers, ...options }),
      );
    },
    async proposal(body, options) {
      const path = '/v1/propose_settings';
      const { value } = await object({ method: 'PUT', path, body: JSON.stringify(body), ...options });
      return value as unknown as Proposal;
    },
    async backendState(options) {
      const { value } = await object({ method: 'GET', path: '/v1/backend_state', ...options });
      if (typeof value.vmState !== 'string') throw notOurService(connection, '/v1/backend_state returned no state');
      return value as unknown as BackendStateReply;
    },
    async setBackendState(state, options) {
      const body = JSON.stringify({ vmState: state });
      return written(await call({ method: 'PUT', path: '/v1/backend_state', body, ...options }));
    },
    async shutdown(options) {
      return (await call({ method: 'PUT', path: '/v1/shutdown', ...options })).body.toString();
    },
    plan: (request, options = {}) => planned(request, options),
    async planWithLive(request, options = {}) {
      const { live, ...plan } = await planned(request, options, { live: 'true' });
      if (live) return { plan, live };
      throw notOurService(connection, '/v2/plan returned a plan without the live state');
    },
    async apply(request, tag, { author, onFailure, keep, ...options } = {}) {
      const body = JSON.stringify({ ...request, tag, author, onFailure, keep });
      const { value } = await object({ method: 'POST', path: '/v2/apply', body, ...options });
      if (isDocument(value, 'ApplyReply', REPLY_PARTS)) return value as unknown as ApplyReply;
      throw notOurService(connection, '/v2/apply did not report what was written');
    },
    async history(options) {
      const { value } = await object({ method: 'GET', path: '/v2/history', ...options });
      if (isDocument(value, 'History', HISTORY_PARTS)) return value.entries as unknown as HistoryEntry[];
      throw notOurService(connection, '/v2/history returned no history');
    },
    async addPortForward(forward, options) {
      await call({ method: 'POST', path: '/v2/port_forwards', body: JSON.stringify(forward), ...options });
    },
    async removePortForward(key, options) {
      await call({ method: 'DELETE', path: forwardPath(key), ...options });
    },
    async status(options) {
      const { value } = await object({ method: 'GET', path: '/v2/status', ...options });
      return statusIn(value, connection, '/v2/status');
    },
    async layers(options) {
      const { value } = await object({ method: 'GET', path: '/v2/settings/layers', ...options });
      if (isDocument(value, 'SettingLayers', LAYERS_PARTS)) return value as unknown as SettingLayers;
      throw notOurService(connection, '/v2/settings/layers returned no layers');
    },
    events,
    watch: (onStatus, signal) =>
      events({
        kinds: ['status'],
        onMessage: (message) => {
          if (message.kind === 'Status') onStatus(message);
        },
        signal,
      }),
  };

  async function events({ kinds, since, onMessage, onPosition, signal, clock = steadyClock }: EventsRequest) {
    const path = `/v2/events?kinds=${kinds.join(',')}`;
    const silence = silenceWatch(clock);
    const read = eventReader({
      onEvent: ({ name, data }) => onMessage(messageIn(name, data, connection)),
      ...(onPosition ? { onId: onPosition } : {}),
      onComment: silence.beats,
    });
    try {
      await call({
        method: 'GET',
        path,
        signal: AbortSignal.any([signal, silence.signal]),
        ...(since === undefined ? {} : { headers: { 'Last-Event-ID': since } }),
        onPart(part) {
          silence.heard();
          read(part);
        },
      });
    } catch (error) {
      throw silence.signal.aborted && !signal.aborted ? silentError() : error;
    } finally {
      await silence.end();
    }
  }
}

/** Kinds of a newer service are kept: the reader decides. */
function messageIn(name: string, data: string, connection: Connection): StreamMessage {
  const value = parseObjectText(data);
  if (value && name === 'status') return statusIn(value, connection, '/v2/events');
  if (value?.kind === 'Event' && value.formatVersion === 1 && typeof value.type === 'string') {
    return value as unknown as EventDocument;
  }
  throw notOurService(connection, '/v2/events sent something else than events');
}

/** Parts of the documents that the tool uses without further checks. */
const PLAN_PARTS = { objects: ['target', 'summary'], lists: ['changes', 'blastRadius', 'pendingRestart', 'warnings'] };
const STATUS_PARTS = {
  objects: ['driver', 'counters', 'engine', 'machine'],
  lists: ['conditions', 'phases', 'notices'],
};
const REPLY_PARTS = { objects: [], lists: ['sent'] };
const HISTORY_PARTS = { objects: [], lists: ['entries'] };
const LAYERS_PARTS = { objects: ['builtIn', 'inForce', 'driver'], lists: [] };

/** Settings of every version have these two; other servers' replies hardly do. */
function looksLikeSettings({ version, kubernetes }: JsonObject): boolean {
  return Number.isInteger(version) && isObject(kubernetes);
}

function statusIn(value: JsonObject, connection: Connection, path: string): StatusDocument {
  if (isDocument(value, 'Status', STATUS_PARTS)) return value as unknown as StatusDocument;
  throw notOurService(connection, `${path} returned no status`);
}

/** `DELETE` takes its keys from the query. */
export function forwardPath({ namespace, service, k8sPort }: ForwardKey): string {
  const query = new URLSearchParams({ namespace, service, k8sPort: String(k8sPort) });
  return `/v1/port_forwarding?${query}`;
}

/** A shallow check: the full schema validator would cost every start of the tool milliseconds. */
function isDocument(value: JsonObject, kind: string, parts: Record<'objects' | 'lists', string[]>): boolean {
  return (
    value.kind === kind &&
    value.formatVersion === 1 &&
    parts.objects.every((name) => isObject(value[name])) &&
    parts.lists.every((name) => Array.isArray(value[name]))
  );
}

function written(response: HttpResponse): WriteReply {
  const { etag } = response.headers;
  const generation = Number(response.headers['rdctl-generation'] ?? Number.NaN);
  const ignored = response.headers['rdctl-ignored-keys'];
  return {
    text: response.body.toString(),
    ...(Number.isInteger(generation) ? { generation } : {}),
    ...(etag === undefined ? {} : { etag }),
    ignoredKeys: typeof ignored === 'string' && ignored !== '' ? ignored.split(', ').map(decodeURIComponent) : [],
  };
}

function parseObject(connection: Connection, request: HttpRequest, response: HttpResponse): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(response.body.toString());
  } catch (cause) {
    throw notOurService(connection, `the response to ${request.method} ${request.path} is not JSON`, cause);
  }
  if (!isObject(value))
    throw notOurService(connection, `the response to ${request.method} ${request.path} is not an object`);
  return value;
}
