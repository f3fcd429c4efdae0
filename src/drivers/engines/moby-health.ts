import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import type { Workload } from '../driver.ts';
import { getOverSocket } from './engine-socket.ts';

/** A loaded engine can be slow; taking it for dead would end its containers. */
const PING_MS = 10_000;
const INFO_MS = 10_000;

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
  const [info, images] = await Promise.all([read(socket, '/info', signal), read(socket, '/images/json', signal)]);
  const { version, workload } = parseInfo(info);
  return { version, workload: { ...workload, ...parseImages(images) } };
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

/** Reads the body of `GET /info`; members that are missing or of another type are left out. */
export function parseInfo(info: unknown): MobyFacts {
  if (!isObject(info)) return { version: 'unknown', workload: {} };
  const { ServerVersion, ContainersRunning, Containers } = info;
  return {
    version: typeof ServerVersion === 'string' ? ServerVersion : 'unknown',
    workload: {
      ...(typeof ContainersRunning === 'number' ? { runningContainers: ContainersRunning } : {}),
      ...(typeof Containers === 'number' ? { containers: Containers } : {}),
    },
  };
}

/** The list of `GET /images/json`: its length is what people see, while `/info` counts the steps of builds as well. */
export function parseImages(list: unknown): Workload {
  return Array.isArray(list) ? { images: list.length } : {};
}
