import { RdError } from '../../errors.ts';
import type { Program, Shell } from '../shell.ts';

const POLL_MS = 50;
/** To look at a process of a guest costs one there, at the very time when the program needs all that the guest has. */
const LOOK_MS = 1_000;

/**
 * Waits until a program that was just started answers, watching its process all the while.
 * @throws RdError `ERR_DRIVER_FAILED` with the last lines of its log when it ends or stays silent; `ERR_CANCELLED`.
 */
export async function untilReady(
  shell: Shell,
  program: Program,
  answers: () => Promise<boolean>,
  limitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const deadline = shell.pace.now() + limitMs;
  let look = shell.pace.now() + LOOK_MS;
  for (;;) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `waiting for ${program.name} was cancelled`);
    if (await answers()) return;
    if (shell.pace.now() >= look) {
      const { state } = await shell.find(program.name);
      if (state !== 'running') throw await failure(shell, program.name, `${program.name} ended while it was starting`);
      look = shell.pace.now() + LOOK_MS;
    }
    if (shell.pace.now() >= deadline) {
      throw await failure(shell, program.name, `${program.name} did not answer within ${limitMs / 1000} s`);
    }
    await shell.pace.sleep(POLL_MS, signal);
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
