import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';

/** A program that lives on when this one ends. */
export interface Detached {
  pid: number;
  /** Exit status or the signal's name, once the program has ended; `undefined` while it runs. */
  ended(): number | string | undefined;
}

/**
 * Starts a program in a session of its own. It holds none of our pipes: what it prints goes to `output`, which is emptied first
 * (mode 0600). Throws `ERR_IO` when it cannot be started.
 */
export async function detach(
  argv: readonly string[],
  options: { env: Readonly<Record<string, string | undefined>>; cwd: string; output: string },
): Promise<Detached> {
  const [program = '', ...args] = argv;
  mkdirSync(dirname(options.output), { recursive: true, mode: 0o700 });
  const output = openSync(options.output, 'w', 0o600);
  let end: number | string | undefined;
  try {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...options.env },
      detached: true,
      stdio: ['ignore', output, output],
      windowsHide: true,
    });
    child.once('exit', (code, signal) => {
      end = code ?? signal ?? 'unknown';
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    return { pid: child.pid ?? 0, ended: () => end };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RdError('ERR_IO', `${program} could not be started: ${reason}`, { cause });
  } finally {
    closeSync(output);
  }
}
