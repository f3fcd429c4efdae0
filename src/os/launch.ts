import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { installAdvice } from './program.ts';
import { openLog } from './program-log.ts';
import { openToRead } from './regular-file.ts';
import { run } from './run.ts';

/** A program that outlives this process. */
export interface DetachSpec {
  argv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Standard input; never visible to others. */
  input?: string;
  /** Receives its standard error, appended and bounded. */
  logFile: string;
}

export interface Detached {
  pid: number;
  /** True once it has ended. */
  ended(): boolean;
  /** True once it has failed: with a nonzero exit code or by a signal. */
  failed(): boolean;
  /** Returns its standard error since it was started. */
  output(): Promise<string>;
}

const MAX_OUTPUT = 64 * 1024;

/**
 * Spawns a program in a session of its own that holds no stream of this process, so that readers of our output see its end. Resolves once
 * it has been spawned.
 * @throws RdError `ERR_IO` when it cannot be started.
 */
export async function detach(spec: DetachSpec): Promise<Detached> {
  const [program = '', ...args] = spec.argv;
  const log = await openLog(spec.logFile);
  const from = (await log.stat()).size;
  const input = spec.input === undefined ? undefined : await inputFile(spec.input);
  try {
    const child = spawn(program, args, {
      detached: true,
      windowsHide: true,
      env: { ...spec.env },
      stdio: [input?.fd ?? 'ignore', 'ignore', log.fd],
    });
    await once(child, 'spawn');
    let ended = false;
    let failed = false;
    child.on('error', () => undefined);
    child.once('exit', (code) => {
      ended = true;
      failed = code !== 0;
    });
    child.unref();
    return {
      pid: child.pid ?? 0,
      ended: () => ended,
      failed: () => failed,
      output: () => readFrom(spec.logFile, from),
    };
  } catch (cause) {
    throw startError(program, cause);
  } finally {
    await log.close();
    await input?.close();
  }
}

/** Returns an unlinked file open for reading: a pipe would have to stay open, an argument or a variable would be visible. */
async function inputFile(text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'rdctl-'));
  try {
    const path = join(folder, 'input');
    await writeFile(path, text, { mode: 0o600 });
    return await open(path, 'r');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function readFrom(file: string, from: number): Promise<string> {
  const handle = await openToRead(file);
  try {
    const size = (await handle.stat()).size;
    // A log that was rotated meanwhile is read from its start.
    const start = from <= size ? from : 0;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size - start, MAX_OUTPUT)), {
      position: start,
    });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

export interface AttachedSpec {
  argv: readonly string[];
  /** The complete environment. */
  env: Readonly<Record<string, string | undefined>>;
  /** Standard input is a terminal: its modes are restored when a signal interrupts the program. */
  terminal: boolean;
}

/** Terminal signals reach the program too: it handles them, and this process waits for it. */
const TERMINAL_SIGNALS = ['SIGINT', 'SIGQUIT'] as const;
/** Signals sent to this process alone are forwarded. */
const FORWARDED_SIGNALS = ['SIGTERM', 'SIGHUP'] as const;

/**
 * Runs a program with the standard streams of this process to completion, without a timeout.
 * @returns its exit status; 128 plus the signal number after a signal.
 * @throws RdError `ERR_IO` when it cannot be started.
 */
export async function runAttached({ argv, env, terminal }: AttachedSpec): Promise<number> {
  const [program = '', ...args] = argv;
  const modes = terminal ? await stty('-g') : undefined;
  const ignore = () => undefined;
  const forward = (signal: NodeJS.Signals) => void child.kill(signal);
  // Before the program starts, so that handlers are always in place; no signal arrives before the next turn.
  for (const signal of TERMINAL_SIGNALS) process.on(signal, ignore);
  for (const signal of FORWARDED_SIGNALS) process.on(signal, forward);
  const child = spawn(program, args, { env: { ...env }, stdio: 'inherit' });
  try {
    const { code, by } = await new Promise<{ code: number | null; by: NodeJS.Signals | null }>((resolve, reject) => {
      child.on('error', reject);
      child.once('exit', (exit, signal) => resolve({ code: exit, by: signal }));
    });
    if (by === null) return code ?? 1;
    if (modes !== undefined) await stty(modes);
    return 128 + process.getBuiltinModule('node:os').constants.signals[by];
  } catch (cause) {
    throw startError(program, cause);
  } finally {
    // Terminal signals stay ignored: one that arrives as the program exits must not replace its exit status.
    for (const signal of FORWARDED_SIGNALS) process.off(signal, forward);
  }
}

function startError(program: string, cause: unknown): RdError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const reason =
    code === 'ENOENT' ? 'no such file or directory' : code === 'EACCES' ? 'permission denied' : String(code ?? cause);
  return new RdError('ERR_IO', `fork/exec ${program}: ${reason}`, {
    cause,
    advice:
      code === 'ENOENT' && !program.includes('/')
        ? installAdvice(program)
        : 'Check the path and that it is executable.',
  });
}

const STTY_MS = 1_000;

/** Returns the output of `stty`, or undefined if the terminal cannot be read or set; it is then left unchanged. */
async function stty(arg: string): Promise<string | undefined> {
  try {
    const device = process.platform === 'darwin' ? '-f' : '-F';
    const { stdout } = await run(['stty', device, '/dev/tty', arg], { timeoutMs: STTY_MS });
    return stdout.trim();
  } catch {
    return undefined;
  }
}
