import { spawn } from 'node:child_process';
import type { RdError } from '../errors.ts';
import type { RunOptions } from './run.ts';
import { cancelled, failed, notStarted, timedOut } from './run.ts';

const GRACE_MS = 2_000;
const KEPT_ERROR_BYTES = 64 * 1024;

export interface StreamOptions extends Pick<RunOptions, 'env' | 'signal' | 'timeoutMs'> {
  /** Stop timeout when the caller stops reading; 2,000 by default, 0 for a program with nothing to shut down. */
  graceMs?: number;
}

/**
 * Runs a program, without a shell, and streams its standard output. The program is stopped when the caller stops reading.
 * @throws RdError as `run`; when the program fails, after all its output.
 */
export async function* stream(argv: readonly string[], options: StreamOptions = {}): AsyncGenerator<Uint8Array, void> {
  const [program = '', ...args] = argv;
  const { signal, timeoutMs = 30_000, graceMs = GRACE_MS, env } = options;
  if (signal?.aborted) throw cancelled(program);
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(env === undefined ? {} : { env: { ...env } }),
  });
  const exit = new Promise<{ code: number | null; by: NodeJS.Signals | null; error?: unknown }>((resolve) => {
    child.once('error', (error) => resolve({ code: null, by: null, error }));
    child.once('close', (code, by) => resolve({ code, by }));
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-KEPT_ERROR_BYTES);
  });
  let killer: NodeJS.Timeout | undefined;
  let late = false;
  const end = (why?: RdError) => {
    child.kill(graceMs === 0 ? 'SIGKILL' : 'SIGTERM');
    killer ??= setTimeout(() => child.kill('SIGKILL'), graceMs);
    // Another program may hold the other ends, as an ssh control master does for its clients.
    child.stdout.destroy(why);
    child.stderr.destroy();
  };
  const giveUp = () => end(cancelled(program));
  const timer = setTimeout(() => {
    late = true;
    end(timedOut(program, timeoutMs));
  }, timeoutMs);
  signal?.addEventListener('abort', giveUp, { once: true });
  let complete = false;
  try {
    for await (const chunk of child.stdout) yield chunk;
    const { code, by, error } = await exit;
    complete = true;
    if (signal?.aborted) throw cancelled(program);
    if (late) throw timedOut(program, timeoutMs);
    if (error !== undefined) throw notStarted(program, error);
    if (code !== 0) throw failed(program, code, by, stderr);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
    if (!complete) {
      end();
      await exit;
    }
    clearTimeout(killer);
  }
}
