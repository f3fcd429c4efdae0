import { RdError } from '../../errors.ts';
import type { Arrangement, Program, Shell } from '../shell.ts';

/** A program that sends a readiness notification, where the machine supports it. */
export type EngineProgram = Program & { readyMs: number };

interface EngineStart {
  /** Files that the programs require. */
  before?: Arrangement;
  /** Programs that the other one waits for by itself. */
  needs?: readonly Program[];
  program: EngineProgram;
  answers(): Promise<boolean>;
}

const POLL_MS = 50;
/** For a program that has nothing to shut down yet. */
const AT_ONCE_MS = 1_000;
/** Checking a process in a guest costs CPU there, just when the starting program needs it. */
const LOOK_MS = 1_000;

/**
 * Starts a program with its dependencies and waits until it responds, watching all of them.
 * @throws RdError `ERR_DRIVER_FAILED` with the last lines of its log when one of them exits or the program stays silent for too
 *   long; `ERR_CANCELLED`.
 */
export async function startReady(
  shell: Shell,
  { before, needs = [], program, answers }: EngineStart,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = shell;
  const programs = [...needs, program];
  const deadline = clock.now() + program.readyMs;
  await shell.start(programs, { ...(before ? { before } : {}), signal });
  let look = clock.now() + LOOK_MS;
  for (;;) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `waiting for ${program.name} was cancelled`);
    if (await answers()) return;
    if (clock.now() >= look) {
      for (const { name } of programs) {
        const { state } = await shell.find(name);
        if (state === 'running') continue;
        // It would wait for a dependency that has exited.
        if (name !== program.name) await shell.stop(program.name, AT_ONCE_MS, signal);
        throw await failure(shell, name, `${name} ended while it was starting`);
      }
      look = clock.now() + LOOK_MS;
    }
    if (clock.now() >= deadline) {
      throw await failure(shell, program.name, `${program.name} did not answer within ${program.readyMs / 1000} s`);
    }
    await clock.sleep(POLL_MS, signal);
  }
}

async function failure(shell: Shell, name: string, message: string): Promise<RdError> {
  const details = await shell.tail(name);
  const last = details.at(-1);
  return new RdError('ERR_DRIVER_FAILED', last ? `${message}: ${last}` : message, {
    details,
    advice: `See ${name}.log in the log directory.`,
  });
}
