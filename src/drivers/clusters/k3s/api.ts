import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { messageOf, RdError } from '../../../errors.ts';
import { isObject, type JsonObject, parseJson } from '../../../json.ts';
import { bytesOf } from '../../../os/stream-bytes.ts';
import { parseDocument } from '../../../settings/parse.ts';
import type { ServicePort } from '../../driver.ts';
import type { Shell } from '../../shell.ts';

/** Maximum size of the kubeconfig that k3s writes, which has about three thousand characters. */
const MAX_CHARACTERS = 64 * 1024;

/** Administrator credentials for the API. All but the first are secret. PEM texts. */
export interface Credentials {
  ca: string;
  cert: string;
  key: string;
}

/** Parses the kubeconfig that k3s writes; undefined while it is incomplete, and for a file that k3s did not write. */
export function readCredentials(text: string): Credentials | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const { value, findings } = parseDocument(text, '');
  if (findings.length > 0 || !isObject(value)) return undefined;
  const cluster = innerOf(value.clusters, 'cluster');
  const user = innerOf(value.users, 'user');
  const ca = pem(cluster?.['certificate-authority-data']);
  const cert = pem(user?.['client-certificate-data']);
  const key = pem(user?.['client-key-data']);
  if (ca === undefined || cert === undefined || key === undefined) return undefined;
  return { ca, cert, key };
}

/** Returns a kubeconfig for programs of this host, as JSON, which is YAML. Cluster, user and context share one name. */
export function hostKubeconfig({ ca, cert, key }: Credentials, port: number, name: string): string {
  const data = (text: string) => Buffer.from(text, 'utf8').toString('base64');
  const value = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ cluster: { 'certificate-authority-data': data(ca), server: `https://127.0.0.1:${port}` }, name }],
    contexts: [{ context: { cluster: name, user: name }, name }],
    'current-context': name,
    users: [{ name, user: { 'client-certificate-data': data(cert), 'client-key-data': data(key) } }],
  };
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function innerOf(list: unknown, key: string) {
  const item: unknown = Array.isArray(list) ? list[0] : undefined;
  const inner = isObject(item) ? item[key] : undefined;
  return isObject(inner) ? inner : undefined;
}

function pem(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = Buffer.from(value, 'base64').toString('utf8');
  return text.includes('-----BEGIN ') ? text : undefined;
}

interface ApiAnswer {
  status: number;
  text: string;
}

/** The API server of the cluster. */
export interface ApiClient {
  /**
   * Requests a path.
   * @throws RdError `ERR_NOT_READY` when the server does not respond, or another server does in its place; `ERR_CANCELLED`.
   */
  get(path: string, signal: AbortSignal): Promise<ApiAnswer>;
}

const LIMIT_MS = 5_000;
const MAX_BYTES = 16 * 1024 * 1024;
const HOST = '127.0.0.1';

/** Connects as administrator; accepts only a server certificate of the cluster's own CA. */
export function apiClient(shell: Pick<Shell, 'dial'>, port: number, { ca, cert, key }: Credentials): ApiClient {
  return {
    async get(path, signal) {
      const timeout = AbortSignal.timeout(LIMIT_MS);
      const either = AbortSignal.any([signal, timeout]);
      try {
        const raw = await shell.dial(HOST, port, either);
        // Errors surface on the connection above.
        raw.on('error', () => undefined);
        const socket = connect({ socket: raw, host: HOST, ca, cert, key });
        try {
          const answer = await new Promise<IncomingMessage>((resolve, reject) => {
            socket.on('error', reject);
            const headers = { accept: 'application/json' };
            const options = { host: HOST, port, path, headers, signal: either, createConnection: () => socket };
            request(options, resolve).on('error', reject).end();
          });
          return { status: answer.statusCode ?? 0, text: (await bytesOf(answer, MAX_BYTES)).toString('utf8') };
        } finally {
          socket.destroy();
          raw.destroy();
        }
      } catch (cause) {
        if (signal.aborted) throw new RdError('ERR_CANCELLED', 'the request to the API server was canceled', { cause });
        const reason = timeout.aborted ? `no response within ${LIMIT_MS / 1000} s` : messageOf(cause);
        throw new RdError('ERR_NOT_READY', `the API server does not respond on port ${port}: ${reason}`, { cause });
      }
    },
  };
}

/** The state of a cluster. `waiting` names the missing part, as a clause. */
export type Health = { ready: true } | { ready: false; waiting: string };

/**
 * Tells if the API server and every node are ready.
 * @throws RdError `ERR_CANCELLED`.
 */
export async function clusterHealth(api: ApiClient, signal: AbortSignal): Promise<Health> {
  try {
    const ready = await api.get('/readyz', signal);
    if (ready.status !== 200) return { ready: false, waiting: `the API server returned ${ready.status} for /readyz` };
    const nodes = await api.get('/api/v1/nodes', signal);
    if (nodes.status !== 200) return { ready: false, waiting: `the API server returned ${nodes.status} for its nodes` };
    return nodesHealth(nodes.text);
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_NOT_READY') return { ready: false, waiting: error.message };
    throw error;
  }
}

/** Parses a NodeList. */
export function nodesHealth(text: string): Health {
  const list = parseJson(text);
  if (list === undefined) return { ready: false, waiting: 'the API server did not send a list of nodes' };
  const nodes = isObject(list) && Array.isArray(list.items) ? list.items : [];
  if (nodes.length === 0) return { ready: false, waiting: 'no node has joined' };
  for (const node of nodes) {
    const status = isObject(node) && isObject(node.status) ? node.status : {};
    const conditions = Array.isArray(status.conditions) ? status.conditions : [];
    const ready = conditions.find((condition) => isObject(condition) && condition.type === 'Ready');
    if (isObject(ready) && ready.status === 'True') continue;
    const why = isObject(ready) && typeof ready.message === 'string' ? `: ${ready.message.slice(0, 300)}` : '';
    return { ready: false, waiting: `the node is not ready${why}` };
  }
  return { ready: true };
}

/** A pod address, as seen from the machine. */
interface PodAddress {
  host: string;
  port: number;
}

/**
 * Connects to a pod that serves the port now. The pod is resolved through the API and dialed from the machine, which is a node of the pod network.
 * Throws the errors of `ClusterDriver.connect`.
 */
export async function connectService(
  api: ApiClient,
  shell: Pick<Shell, 'dial'>,
  target: ServicePort,
  signal: AbortSignal,
): Promise<Duplex> {
  const { namespace, service, port } = target;
  const id = `${namespace}/${service}`;
  const base = `namespaces/${encodeURIComponent(namespace)}`;
  const serviceObject = await ask(api, `/api/v1/${base}/services/${encodeURIComponent(service)}`, signal);
  if (serviceObject === undefined) throw new RdError('ERR_NOT_FOUND', `the cluster has no service ${id}`);
  const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
  const list = await ask(api, `/apis/discovery.k8s.io/v1/${base}/endpointslices?labelSelector=${selector}`, signal);
  const slices = objectsIn(list?.items);
  const name = portName(serviceObject, port) ?? podPortName(slices, port);
  if (name === undefined) throw new RdError('ERR_NOT_FOUND', `the service ${id} has no TCP port ${port}`);
  const addresses = readyAddresses(slices, name);
  let failure: unknown;
  for (const { host, port: at } of addresses) {
    try {
      return await shell.dial(host, at, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      failure = error;
    }
  }
  const why = addresses.length > 0 ? 'none of its pods accepts the connection' : 'none of its pods is ready';
  throw new RdError('ERR_NOT_READY', `nothing serves port ${port} of the service ${id}: ${why}`, { cause: failure });
}

/**
 * Returns the name of a service port (`''` for an unnamed one). It is looked up by name, then by number, then by target port, because the compatible
 * application sends target ports.
 */
function portName(service: JsonObject, requestedPort: number | string): string | undefined {
  const spec = isObject(service.spec) ? service.spec : {};
  const ports = objectsIn(spec.ports).filter(({ protocol }) => protocol === undefined || protocol === 'TCP');
  const match =
    ports.find(({ name }) => name === requestedPort) ??
    ports.find(({ port }) => port === requestedPort) ??
    ports.find(({ targetPort }) => typeof requestedPort === 'number' && targetPort === requestedPort);
  if (!match) return undefined;
  return typeof match.name === 'string' ? match.name : '';
}

/** Resolves a target port that the service gives by name instead of by number. */
function podPortName(slices: readonly JsonObject[], requestedPort: number | string): string | undefined {
  const ports = slices.flatMap((slice) => objectsIn(slice.ports));
  const match = ports.find(({ port, protocol }) => port === requestedPort && (protocol ?? 'TCP') === 'TCP');
  return match && String(match.name ?? '');
}

/** Returns the ready addresses in endpoint slices for the port of that name. */
function readyAddresses(slices: readonly JsonObject[], name: string): PodAddress[] {
  return slices.flatMap((slice) => {
    if (slice.addressType !== 'IPv4' && slice.addressType !== 'IPv6') return [];
    const ports = objectsIn(slice.ports).flatMap((each) =>
      (each.name ?? '') === name && typeof each.port === 'number' ? [each.port] : [],
    );
    const hosts = objectsIn(slice.endpoints).flatMap(({ addresses, conditions }) => {
      const [first] = Array.isArray(addresses) ? addresses : [];
      // An absent condition counts as ready.
      const isReady = !isObject(conditions) || conditions.ready !== false;
      return isReady && typeof first === 'string' ? [first] : [];
    });
    return hosts.flatMap((host) => ports.map((port) => ({ host, port })));
  });
}

function objectsIn(list: unknown): JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

/** Requests an object; undefined if it is missing. */
async function ask(api: ApiClient, path: string, signal: AbortSignal): Promise<JsonObject | undefined> {
  const { status, text } = await api.get(path, signal);
  if (status === 404) return undefined;
  const value = parseJson(text);
  if (status === 200 && isObject(value)) return value;
  throw new RdError('ERR_NOT_READY', `the API server returned ${status} for ${path.split('?')[0]}`);
}
