import { RdError } from '../../../errors.ts';
import type { Shell } from '../../shell.ts';
import type { Health } from './health.ts';

const POLL_MS = 500;

/**
 * Waits until the cluster is ready, and watches its process.
 * @throws RdError `ERR_DRIVER_FAILED` with the last lines of its log when it exits or times out; `ERR_CANCELLED`.
 */
export async function untilUp(
  shell: Shell,
  name: string,
  health: () => Promise<Health>,
  limitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const deadline = shell.clock.now() + limitMs;
  for (;;) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for the cluster was cancelled');
    const now = await health();
    if (now.ready) return;
    if ((await shell.find(name)).state !== 'running')
      throw await failure(shell, name, 'k3s ended while it was starting');
    if (shell.clock.now() >= deadline) {
      throw await failure(shell, name, `the cluster was not ready within ${limitMs / 1000} s: ${now.waiting}`);
    }
    await shell.clock.sleep(POLL_MS, signal);
  }
}

async function failure(shell: Shell, name: string, message: string): Promise<RdError> {
  const details = await shell.tail(name);
  const last = details.at(-1);
  return new RdError('ERR_DRIVER_FAILED', last === undefined ? message : `${message} (last in its log: ${last})`, {
    details,
    advice: `See ${name}.log in the log directory of the machine.`,
  });
}
