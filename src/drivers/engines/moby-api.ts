import { createReadStream } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { messageOf, RdError } from '../../errors.ts';
import { isObject, type JsonObject, parseJson } from '../../json.ts';
import { bytesOf } from '../../os/stream-bytes.ts';
import type { RunningContainer, Workload } from '../driver.ts';

interface MobyCall {
  method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  path: string;
  /** Body sent as JSON. */
  body?: object;
  /** A file of this host to send as the body, unchanged. */
  file?: string;
  /** Inactivity timeout in milliseconds; default one minute. */
  silenceMs?: number;
  /** Agent for several requests over one connection; a connection of its own by default. */
  agent?: Agent;
}

const SILENCE_MS = 60_000;
const MAX_BODY = 16 * 1024 * 1024;
/** Response timeout. A loaded engine can be slow; declaring it dead would end its containers. */
const ANSWER_MS = 10_000;

/**
 * Sends one request to dockerd over its socket. The response is a stream that must be read or destroyed.
 * @throws RdError `ERR_DRIVER_FAILED` without a response; `ERR_CANCELLED` when the signal aborts.
 */
export function callMoby(socketPath: string, call: MobyCall, signal: AbortSignal): Promise<IncomingMessage> {
  const { method, path, body, file, silenceMs = SILENCE_MS, agent = false } = call;
  return new Promise((resolve, reject) => {
    const type = file === undefined ? 'application/json' : 'application/octet-stream';
    const headers = { host: 'localhost', 'content-type': type };
    const outgoing = request({ socketPath, method, path, headers, signal, agent }, resolve);
    outgoing.setTimeout(silenceMs, () => outgoing.destroy(new Error(`no data for ${silenceMs / 1000} s`)));
    outgoing.on('error', (cause) => {
      if (signal.aborted) reject(new RdError('ERR_CANCELLED', `the request to ${socketPath} was canceled`, { cause }));
      else reject(noAnswer(socketPath, cause));
    });
    if (file === undefined) return void outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    const source = createReadStream(file);
    source.on('error', (cause) => outgoing.destroy(cause));
    outgoing.on('close', () => source.destroy());
    source.pipe(outgoing);
  });
}

function noAnswer(socketPath: string, cause: Error): RdError {
  return new RdError('ERR_DRIVER_FAILED', `dockerd does not respond on ${socketPath}: ${cause.message}`, { cause });
}

/** Returns the whole response as text. Throws `ERR_DRIVER_FAILED` when it is truncated or too long. */
async function textOf(answer: IncomingMessage): Promise<string> {
  try {
    return (await bytesOf(answer, MAX_BODY)).toString('utf8');
  } catch (cause) {
    throw new RdError('ERR_DRIVER_FAILED', `the response of dockerd cannot be read: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Sends a request and reads the response; `undefined` for a 404.
 * @throws RdError `ERR_FORBIDDEN` for a 403 and `ERR_DRIVER_FAILED` for other refusals, with dockerd's message.
 */
export async function askMoby(socket: string, call: MobyCall, signal: AbortSignal): Promise<unknown> {
  const answer = await callMoby(socket, call, signal);
  const status = answer.statusCode ?? 0;
  if (status !== 404 && status >= 300 && status !== 304) throw await mobyRefusal(answer);
  const text = await textOf(answer);
  return status === 404 ? undefined : parseJson(text);
}

/** Returns the error for a refused request, with the message in `{"message":"…"}`. */
export async function mobyRefusal(answer: IncomingMessage): Promise<RdError> {
  const status = answer.statusCode ?? 0;
  const value = parseJson(await textOf(answer));
  const message = isObject(value) && typeof value.message === 'string' ? value.message : `status ${status}`;
  const code = status === 403 ? 'ERR_FORBIDDEN' : status === 404 ? 'ERR_NOT_FOUND' : 'ERR_DRIVER_FAILED';
  return new RdError(code, `dockerd refused: ${message.trim()}`);
}

/** Waits for the end of work whose progress dockerd reports line by line, and throws `failure` for an error among the lines. */
export async function followMoby(
  socket: string,
  call: MobyCall,
  signal: AbortSignal,
  failure: (why: string) => RdError,
): Promise<void> {
  const answer = await callMoby(socket, call, signal);
  if (answer.statusCode !== 200) throw await mobyRefusal(answer);
  for await (const line of createInterface({ input: answer })) {
    const value = parseJson(line);
    if (isObject(value) && typeof value.error === 'string') throw failure(value.error);
  }
  if (signal.aborted) throw new RdError('ERR_CANCELLED', `the request to ${socket} was canceled`);
}

/** Returns all containers with that label, running or not, as dockerd lists them. */
export async function containersWith(
  socket: string,
  label: string,
  signal: AbortSignal,
): Promise<(JsonObject & { Id: string })[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
  const list = await askMoby(socket, { method: 'GET', path: `/containers/json?all=1&filters=${filters}` }, signal);
  return (Array.isArray(list) ? list : []).filter((one) => isObject(one) && typeof one.Id === 'string');
}

/** Removes a container, even a running one, with its anonymous volumes. */
export async function removeContainer(socket: string, id: string, signal: AbortSignal): Promise<void> {
  await askMoby(socket, { method: 'DELETE', path: `/containers/${id}?force=1&v=1` }, signal);
}

/** Sends a `GET` whose whole response must arrive within the limit. Throws the errors of `callMoby`. */
export async function getMoby(
  socket: string,
  path: string,
  signal: AbortSignal,
  { limitMs = ANSWER_MS, agent }: { limitMs?: number; agent?: Agent } = {},
): Promise<{ status: number; text: string; server: string }> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    const answer = await callMoby(socket, { method: 'GET', path, ...(agent ? { agent } : {}) }, limit);
    const { statusCode: status = 0, headers } = answer;
    return { status, text: await textOf(answer), server: String(headers.server ?? '') };
  } catch (error) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `the request to ${socket} was canceled`, { cause: error });
    if (error instanceof RdError && error.code === 'ERR_CANCELLED') {
      throw noAnswer(socket, new Error(`nothing within ${limitMs / 1000} s`));
    }
    throw error;
  }
}

/** Limits the requests per observation: only the details show a container's restart policy. */
const MAX_DETAILS = 100;
/** A label of every container of a pod, including the sandbox. */
export const POD = 'io.kubernetes.pod.uid';
/** Swarm restarts are not visible in the container. */
const SWARM = 'com.docker.swarm.service.id';

/**
 * Returns the version of a dockerd that passes its health check, or undefined for one that does not. `/version` runs two programs each time, which an
 * idle guest would notice.
 */
export async function healthyVersion(
  socket: string,
  signal: AbortSignal,
  limitMs = ANSWER_MS,
): Promise<string | undefined> {
  try {
    const { status, text, server } = await getMoby(socket, '/_ping', signal, { limitMs });
    return status === 200 && text.trim() === 'OK' ? parseVersion(server) : undefined;
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return undefined;
    throw error;
  }
}

/** Returns counts and running containers. Unreadable parts are absent: an engine that answers `/_ping` must not be called dead. */
export async function mobyWorkload(socket: string, signal: AbortSignal): Promise<Workload> {
  // Each connection into an idle guest costs more than a request.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const read = async (path: string) => {
    const answer = await getMoby(socket, path, signal, { agent }).catch(unlessAborted(signal));
    return answer?.status === 200 ? parseJson(answer.text) : undefined;
  };
  try {
    const containers = await read('/containers/json?all=1');
    const images = await read('/images/json');
    const running = await details(read, runningIn(containers));
    return { ...countsIn(containers, images), ...(running ? { running } : {}) };
  } finally {
    agent.destroy();
  }
}

/** True if dockerd stores its images in containerd. */
export async function usesSnapshotter(socket: string, signal: AbortSignal): Promise<boolean> {
  const answer = await getMoby(socket, '/info', signal).catch(unlessAborted(signal));
  const info = answer?.status === 200 ? parseJson(answer.text) : undefined;
  return isObject(info) && JSON.stringify(info.DriverStatus ?? []).includes('io.containerd.snapshotter');
}

/** A running container in the list of `GET /containers/json`. */
interface Listed extends RunningContainer {
  /** Empty if the details would not show whether the container restarts. */
  id: string;
}

/** Parses the running containers in `GET /containers/json`, without facts that only their details show; undefined for another response. */
export function runningIn(list: unknown): Listed[] | undefined {
  if (!Array.isArray(list)) return undefined;
  return list.filter(isRunning).map(({ Id, Names, Labels, Ports }) => {
    const id = typeof Id === 'string' ? Id : '';
    const names = (Array.isArray(Names) ? Names : []).filter((name) => typeof name === 'string');
    // A further slash separates link aliases of other containers.
    const name = names.find((one) => one.lastIndexOf('/') === 0)?.slice(1) || id.slice(0, 12);
    const labels = isObject(Labels) ? Labels : {};
    if (POD in labels) return { name, id: '', pod: true };
    const ports = publishedIn(Ports);
    return { name, id: SWARM in labels ? '' : id, ...(ports.length === 0 ? {} : { ports }) };
  });
}

/** Parses `[{IP, PrivatePort, PublicPort, Type}]`, one for each address. */
function publishedIn(list: unknown): NonNullable<RunningContainer['ports']> {
  const ports = (Array.isArray(list) ? list : []).flatMap((each: unknown) => {
    const { Type, PublicPort } = isObject(each) ? each : {};
    if ((Type !== 'tcp' && Type !== 'udp') || typeof PublicPort !== 'number') return [];
    return [[`${Type} ${PublicPort}`, { protocol: Type, port: PublicPort }] as const];
  });
  return [...new Map(ports).values()];
}

async function details(
  read: (path: string) => Promise<unknown>,
  listed: Listed[] | undefined,
): Promise<RunningContainer[] | undefined> {
  if (!listed) return undefined;
  const selected = listed.filter(({ id }) => id !== '').slice(0, MAX_DETAILS);
  const returns = new Map<string, boolean | undefined>();
  for (const { id } of selected) returns.set(id, parseReturns(await read(`/containers/${id}/json`)));
  return listed.map(({ id, ...container }) => {
    const restarts = returns.get(id);
    return restarts === undefined ? container : { ...container, returns: restarts };
  });
}

/** Parses the restart policy in `GET /containers/ID/json`. With `on-failure` it depends on how stopping the engine ends the container. */
export function parseReturns(body: unknown): boolean | undefined {
  const host = isObject(body) ? body.HostConfig : undefined;
  const policy = isObject(host) && isObject(host.RestartPolicy) ? host.RestartPolicy.Name : undefined;
  if (policy === 'always' || policy === 'unless-stopped') return true;
  return policy === 'no' || policy === '' ? false : undefined;
}

function unlessAborted(signal: AbortSignal): (error: unknown) => undefined {
  return (error) => {
    if (signal.aborted) throw error;
  };
}

/** Parses the version in dockerd's `Server` header: `Docker/26.1.5 (linux)`. */
export function parseVersion(server: string | undefined): string {
  return /^Docker\/(\S+)/.exec(server ?? '')?.[1] ?? 'unknown';
}

/**
 * Counts the objects in `GET /containers/json?all=1` and `GET /images/json`, as users see them. The counts of `/info` are wrong after an unclean exit
 * of dockerd, which keeps counting a dead container as running, and include build steps.
 */
export function countsIn(containers: unknown, images: unknown): Workload {
  return {
    ...(Array.isArray(containers)
      ? { runningContainers: containers.filter(isRunning).length, containers: containers.length }
      : {}),
    ...(Array.isArray(images) ? { images: images.length } : {}),
  };
}

function isRunning(container: unknown): container is JsonObject {
  return isObject(container) && container.State === 'running';
}
