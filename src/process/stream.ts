import { spawn } from 'node:child_process';
import type { RunOptions } from './run.ts';
import { cancelled, failed, notStarted, timedOut } from './run.ts';

const KILL_AFTER_MS = 2_000;
const KEPT_ERROR_BYTES = 64 * 1024;

/**
 * Runs a program, without a shell, and gives its standard output as it comes. The program is ended when nobody wants the rest.
 * @throws RdError as `run`, once everything that came before has been given.
 */
export async function* stream(
  argv: readonly string[],
  options: Pick<RunOptions, 'env' | 'signal' | 'timeoutMs'> = {},
): AsyncGenerator<Uint8Array, void> {
  const [program = '', ...args] = argv;
  const { signal, timeoutMs = 30_000, env } = options;
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
  const end = () => {
    child.kill('SIGTERM');
    killer ??= setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
  };
  const timer = setTimeout(() => {
    late = true;
    end();
  }, timeoutMs);
  signal?.addEventListener('abort', end, { once: true });
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
    signal?.removeEventListener('abort', end);
    if (!complete) {
      end();
      await exit;
    }
    clearTimeout(killer);
  }
}
