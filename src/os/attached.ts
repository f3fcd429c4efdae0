import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { RdError } from '../errors.ts';
import { installAdvice } from './program.ts';
import { run } from './run.ts';

export interface AttachedSpec {
  argv: readonly string[];
  /** The whole environment. */
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
  const modes = terminal ? await terminalModes() : undefined;
  const ignore = () => undefined;
  const handOn = (signal: NodeJS.Signals) => void child.kill(signal);
  // Before the program starts, so that handlers are always in place; no signal arrives before the next turn.
  for (const signal of TERMINAL_SIGNALS) process.on(signal, ignore);
  for (const signal of FORWARDED_SIGNALS) process.on(signal, handOn);
  const child = spawn(program, args, { env: { ...env }, stdio: 'inherit' });
  try {
    const { code, by } = await new Promise<{ code: number | null; by: NodeJS.Signals | null }>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (exit, signal) => resolve({ code: exit, by: signal }));
    });
    if (by === null) return code ?? 1;
    if (modes !== undefined) await restoreTerminal(modes);
    return 128 + constants.signals[by];
  } catch (cause) {
    throw notStarted(program, cause);
  } finally {
    // Terminal signals stay ignored: one that arrives as the program exits must not replace its exit status.
    for (const signal of FORWARDED_SIGNALS) process.off(signal, handOn);
  }
}

function notStarted(program: string, cause: unknown): RdError {
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

/** Undefined where they cannot be read: the terminal is then left as it is. */
async function terminalModes(): Promise<string | undefined> {
  return stty(['-g']);
}

async function restoreTerminal(modes: string): Promise<void> {
  await stty([modes]);
}

async function stty(args: readonly string[]): Promise<string | undefined> {
  try {
    const device = process.platform === 'darwin' ? '-f' : '-F';
    const { stdout } = await run(['stty', device, '/dev/tty', ...args], { timeoutMs: STTY_MS });
    return stdout.trim();
  } catch {
    return undefined;
  }
}
