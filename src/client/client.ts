import type { EventDocument } from '../events/event.ts';
import { defined, isObject, type JsonObject, parseObject as parseObjectText } from '../json.ts';
import { steadyClock } from '../os/clock.ts';
import type { ForwardKey, LiveState, Plan, PlanRequest } from '../plan/change.ts';
import type { HistoryEntry } from '../plan/history.ts';
import type { SettingLayers } from '../plan/layers.ts';
import type { ApplyReply, StatusDocument } from '../reconcile/status-document.ts';
import type { Connection, HttpRequest, HttpResponse, Transport } from './connection.ts';
import type { BackendStateReply, PlanOptions, Proposal, ServiceClient, WriteReply } from './contract.ts';
import { type EventsRequest, eventReader, type StreamMessage, silenceWatch, silentError } from './event-stream.ts';
import { httpTransport } from './http.ts';
import { isWebPage, notOurService, refusal } from './replies.ts';

/** Creates a client of the server at `connection`, which is assumed to be our service until it has answered. */
export function createClient(connection: Connection, transport: Transport = httpTransport): ServiceClient {
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
  async function requestPlan(
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
    owner: 'the running service',
    request: (request) => transport(connection, request),
    async settings(options) {
      const { value, response } = await object({ method: 'GET', path: '/v1/settings', ...options });
      if (!looksLikeSettings(value)) throw notOurService(connection, '/v1/settings returned no settings');
      const { etag } = response.headers;
      return { settings: value, text: response.body.toString(), ...defined({ etag }) };
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
    async unsupported(settings, paths, options = {}) {
      const { changes } = await requestPlan({ settings, state: 'unmanaged', prune: [], wishes: [...paths] }, options);
      return changes.filter(({ blocked }) => blocked?.by === 'unsupported').map(({ path }) => path);
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
    plan: (request, options = {}) => requestPlan(request, options),
    async planWithLive(request, options = {}) {
      const { live, ...plan } = await requestPlan(request, options, { live: 'true' });
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
    async releaseKept(name, options) {
      await call({ method: 'DELETE', path: `/v2/kept?${new URLSearchParams({ name })}`, ...options });
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

/** Parses a message. Kinds of a newer service are kept, and left to the reader. */
function messageIn(name: string, data: string, connection: Connection): StreamMessage {
  const value = parseObjectText(data);
  if (value && name === 'status') return statusIn(value, connection, '/v2/events');
  if (value?.kind === 'Event' && value.formatVersion === 1 && typeof value.type === 'string') {
    return value as unknown as EventDocument;
  }
  throw notOurService(connection, '/v2/events sent something else than events');
}

/** Parts of the documents that the tool uses without further checks: objects and lists. */
const PLAN_PARTS = { objects: ['target', 'summary'], lists: ['changes', 'blastRadius', 'pendingRestart', 'warnings'] };
const STATUS_PARTS = {
  objects: ['driver', 'counters', 'engine', 'machine'],
  lists: ['conditions', 'phases', 'notices'],
};
const REPLY_PARTS = { objects: [], lists: ['sent'] };
const HISTORY_PARTS = { objects: [], lists: ['entries'] };
const LAYERS_PARTS = { objects: ['builtIn', 'inForce', 'driver'], lists: [] };

/** Whether a reply looks like settings: those of every version have these two members, other servers' replies hardly do. */
function looksLikeSettings({ version, kubernetes }: JsonObject): boolean {
  return Number.isInteger(version) && isObject(kubernetes);
}

function statusIn(value: JsonObject, connection: Connection, path: string): StatusDocument {
  if (isDocument(value, 'Status', STATUS_PARTS)) return value as unknown as StatusDocument;
  throw notOurService(connection, `${path} returned no status`);
}

/** Returns the path of a `DELETE`, which takes its keys from the query. */
export function forwardPath({ namespace, service, k8sPort }: ForwardKey): string {
  const query = new URLSearchParams({ namespace, service, k8sPort: String(k8sPort) });
  return `/v1/port_forwarding?${query}`;
}

/** Checks a document shallowly: the full schema validator would cost every start of the tool milliseconds. */
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
    ...defined({ etag }),
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
