import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../src/errors.ts';
import type { Places } from '../src/storage/places.ts';
import type { Service } from './service.ts';
import { plainText } from './views/value.ts';

const TAIL_BYTES = 16 * 1024;
/** The program behind each engine, whose log says more than ours. */
const ENGINE_LOGS: Readonly<Record<string, string>> = { moby: 'dockerd.log', containerd: 'containerd.log' };
const SERVICE_LOG = 'service.log';

/** A failed convergence gets the last line of the log that knows most, and the command back. Other errors pass as they are. */
export async function withWayBack(error: unknown, { client }: Service, { logs }: Places): Promise<never> {
  if (!(error instanceof RdError) || error.code !== 'ERR_CONVERGE_FAILED') throw error;
  const engine = await client.status().then(
    (status) => status.engine.name,
    () => undefined,
  );
  const names = [...(engine === undefined ? [] : [ENGINE_LOGS[engine] ?? SERVICE_LOG]), SERVICE_LOG];
  const details = [...error.details];
  for (const name of names) {
    const file = join(logs, name);
    const line = await lastLine(file);
    if (line === undefined) continue;
    details.push(`${file}: ${plainText(line)}`);
    break;
  }
  throw new RdError('ERR_CONVERGE_FAILED', error.message, {
    cause: error,
    details,
    advice: error.advice ?? 'Go back to what was there before with: rdctl apply --previous',
  });
}

async function lastLine(file: string): Promise<string | undefined> {
  try {
    const handle = await open(file, 'r');
    try {
      const { size } = await handle.stat();
      const length = Math.min(size, TAIL_BYTES);
      const { buffer } = await handle.read(Buffer.alloc(length), 0, length, size - length);
      return buffer
        .toString('utf8')
        .split('\n')
        .findLast((line) => line.trim() !== '');
    } finally {
      await handle.close();
    }
  } catch {
    // No log, or not ours to read: the reason of the failure stands without it.
    return undefined;
  }
}
