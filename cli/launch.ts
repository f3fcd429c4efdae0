import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../src/client/client.ts';
import type { Connection } from '../src/client/connection.ts';
import { discover } from '../src/client/discovery.ts';
import { RdError } from '../src/errors.ts';
import { detach } from '../src/process/detach.ts';
import { places } from '../src/storage/places.ts';
import type { Io } from './command.ts';
import { supportedPlatform } from './platform.ts';

export interface LaunchOptions {
  io: Io;
  /** Recorded by the service at its first start. */
  driver?: string;
  /** Desired power of the backend; `keep` is what it was, and started the first time. */
  power: 'keep' | 'started' | 'stopped';
  /** Further arguments of `serve`, flags of settings for example. */
  args?: readonly string[];
  /** How long the API may take to answer, in milliseconds. */
  timeoutMs?: number;
}

const POLL_MS = 50;
const LINES = 12;

/**
 * Starts our service in the background and returns when its API answers. It holds none of the caller's pipes.
 * @throws RdError with the code of the service's own failure lost and its words kept as details: `ERR_NOT_RUNNING` when it
 * ended at once, `ERR_DEADLINE` when it does not answer in time.
 */
export async function launchService({ io, driver, power, args = [], timeoutMs = 30_000 }: LaunchOptions): Promise<Connection> {
  const platform = supportedPlatform(io.platform);
  const output = join(places(io.env, platform, homedir()).logs, 'service-output.log');
  const serve = ['serve', `--power=${power}`, ...(driver === undefined ? [] : [`--driver=${driver}`]), ...args];
  const child = await detach([...io.self, ...serve], { env: io.env, cwd: io.cwd, output });
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const connection = await answering(io, platform);
    if (connection) return connection;
    const ended = child.ended();
    if (ended !== undefined) throw await endedAtOnce(ended, output);
    if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted while the service was starting.');
    if (Date.now() >= deadline) {
      throw new RdError('ERR_DEADLINE', `The service (pid ${child.pid}) does not answer after ${timeoutMs / 1000} s.`, {
        advice: `See ${output}.`,
      });
    }
    await delay(POLL_MS, undefined, { signal: io.signal }).catch(() => undefined);
  }
}

/** Our service, if it has written its connection file and answers there. */
async function answering(io: Io, platform: ReturnType<typeof supportedPlatform>): Promise<Connection | undefined> {
  try {
    const connection = await discover({}, io.env, platform);
    if (connection.foreign) return undefined;
    const { status } = await createClient(connection).request({ method: 'GET', path: '/v1', timeoutMs: 2000 });
    return status === 200 ? connection : undefined;
  } catch (error) {
    // No file yet, or that of an earlier run.
    if (error instanceof RdError) return undefined;
    throw error;
  }
}

async function endedAtOnce(how: number | string, output: string): Promise<RdError> {
  const text = await readFile(output, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line.trim() !== '').slice(-LINES);
  return new RdError('ERR_NOT_RUNNING', `The service could not be started (${typeof how === 'number' ? `exit status ${how}` : how}).`, {
    details: lines,
    ...(lines.length === 0 ? { advice: 'Run `rdctl serve` to see what happens.' } : {}),
  });
}
