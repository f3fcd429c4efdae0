import { RdError } from '../../errors.ts';
import { isObject, type JsonObject } from '../../json.ts';
import type { RunningContainer, Workload } from '../driver.ts';
import { getOverSocket } from './engine-socket.ts';

/** A loaded engine can be slow; taking it for dead would end its containers. */
const PING_MS = 10_000;
const INFO_MS = 10_000;
/** Only the details show a container's restart policy. Limits the requests per observation, and their concurrency. */
const MAX_DETAILS = 100;
const DETAILS_AT_ONCE = 10;
const POD = 'io.kubernetes.pod.uid';
/** Swarm restarts are not visible in the container. */
const SWARM = 'com.docker.swarm.service.id';

/** A request prefix after which HTTP servers such as dockerd keep a connection open. */
export const HTTP_HELLO = 'GET /_ping HTTP/1.1\r\nHost: localhost\r\n\r\n';

export interface MobyFacts {
  version: string;
  workload: Workload;
}

/** True when dockerd answers its health check. */
export async function answersPing(socket: string, signal: AbortSignal, timeoutMs = PING_MS): Promise<boolean> {
  try {
    const { status, body } = await getOverSocket(socket, '/_ping', { timeoutMs, signal });
    return status === 200 && body.trim() === 'OK';
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_CONNECTION') return false;
    throw error;
  }
}

/** Version, counts and running containers. Unreadable parts are absent: an engine that answers `/_ping` must not be called dead. */
export async function mobyFacts(socket: string, signal: AbortSignal): Promise<MobyFacts> {
  const paths = ['/version', '/containers/json?all=1', '/images/json'];
  const [version, containers, images] = await Promise.all(paths.map((path) => read(socket, path, signal)));
  const running = await details(socket, runningIn(containers), signal);
  const workload = { ...parseContainers(containers), ...parseImages(images), ...(running ? { running } : {}) };
  return { version: parseVersion(version), workload };
}

/** A running container in the list of `GET /containers/json`. */
interface Listed extends RunningContainer {
  /** Empty when the details would not show whether it restarts. */
  id: string;
}

/** The running containers in `GET /containers/json`, without what only their details show; undefined for another response. */
export function runningIn(list: unknown): Listed[] | undefined {
  if (!Array.isArray(list)) return undefined;
  return list.filter(isRunning).map(({ Id, Names, Labels }) => {
    const id = typeof Id === 'string' ? Id : '';
    const names = (Array.isArray(Names) ? Names : []).filter((name) => typeof name === 'string');
    // A further slash separates link aliases of other containers.
    const name = names.find((one) => one.lastIndexOf('/') === 0)?.slice(1) || id.slice(0, 12);
    const labels = isObject(Labels) ? Labels : {};
    if (POD in labels) return { name, id: '', pod: true };
    return { name, id: SWARM in labels ? '' : id };
  });
}

async function details(
  socket: string,
  listed: Listed[] | undefined,
  signal: AbortSignal,
): Promise<RunningContainer[] | undefined> {
  if (!listed) return undefined;
  const asked = listed.filter(({ id }) => id !== '').slice(0, MAX_DETAILS);
  const returning = new Map<string, boolean | undefined>();
  for (let from = 0; from < asked.length; from += DETAILS_AT_ONCE) {
    const some = asked.slice(from, from + DETAILS_AT_ONCE);
    await Promise.all(
      some.map(async ({ id }) => returning.set(id, parseReturns(await read(socket, `/containers/${id}/json`, signal)))),
    );
  }
  return listed.map(({ id, ...container }) => {
    const returns = returning.get(id);
    return returns === undefined ? container : { ...container, returns };
  });
}

/** Parses the restart policy in `GET /containers/ID/json`. With `on-failure` it depends on how stopping the engine ends the container. */
export function parseReturns(body: unknown): boolean | undefined {
  const host = isObject(body) ? body.HostConfig : undefined;
  const policy = isObject(host) && isObject(host.RestartPolicy) ? host.RestartPolicy.Name : undefined;
  if (policy === 'always' || policy === 'unless-stopped') return true;
  return policy === 'no' || policy === '' ? false : undefined;
}

async function read(socket: string, path: string, signal: AbortSignal): Promise<unknown> {
  try {
    const { status, body } = await getOverSocket(socket, path, { timeoutMs: INFO_MS, signal });
    return status === 200 ? JSON.parse(body) : undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

/** Parses the body of `GET /version`. */
export function parseVersion(body: unknown): string {
  return isObject(body) && typeof body.Version === 'string' ? body.Version : 'unknown';
}

/**
 * Parses `GET /containers/json?all=1`. The counts of `/info` are wrong after an unclean exit of dockerd: it keeps counting a dead container
 * as running.
 */
export function parseContainers(list: unknown): Workload {
  if (!Array.isArray(list)) return {};
  return { runningContainers: list.filter(isRunning).length, containers: list.length };
}

function isRunning(container: unknown): container is JsonObject {
  return isObject(container) && container.State === 'running';
}

/** The list of `GET /images/json`: its length is what users see, while `/info` also counts build steps. */
export function parseImages(list: unknown): Workload {
  return Array.isArray(list) ? { images: list.length } : {};
}
