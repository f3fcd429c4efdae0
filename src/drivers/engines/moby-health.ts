import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import type { Workload } from '../driver.ts';
import { getOverSocket } from './engine-socket.ts';

/** A loaded engine can be slow; taking it for dead would end its containers. */
const PING_MS = 10_000;
const INFO_MS = 10_000;

/** What dockerd, like every HTTP server, keeps a connection open after. */
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

/** Version and counts. What cannot be read is left out: an engine that answers `/_ping` is not to be called dead. */
export async function mobyFacts(socket: string, signal: AbortSignal): Promise<MobyFacts> {
  const paths = ['/version', '/containers/json?all=1', '/images/json'];
  const [version, containers, images] = await Promise.all(paths.map((path) => read(socket, path, signal)));
  return { version: parseVersion(version), workload: { ...parseContainers(containers), ...parseImages(images) } };
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

/** Reads the body of `GET /version`. */
export function parseVersion(body: unknown): string {
  return isObject(body) && typeof body.Version === 'string' ? body.Version : 'unknown';
}

/**
 * Reads the list of `GET /containers/json?all=1`. The counts of `/info` go wrong when dockerd did not end as it should: it then goes on
 * counting a container as running that it has found ended.
 */
export function parseContainers(list: unknown): Workload {
  if (!Array.isArray(list)) return {};
  const running = list.filter((container) => isObject(container) && container.State === 'running');
  return { runningContainers: running.length, containers: list.length };
}

/** The list of `GET /images/json`: its length is what people see, while `/info` counts the steps of builds as well. */
export function parseImages(list: unknown): Workload {
  return Array.isArray(list) ? { images: list.length } : {};
}
