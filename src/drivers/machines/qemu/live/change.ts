import { RdError } from '../../../../errors.ts';
import type { Clock } from '../../../../os/clock.ts';
import type { Connection } from '../guest.ts';
import type { Monitor } from '../monitor.ts';

/** Dependencies of a live change. */
export interface LiveParts {
  monitor: Pick<Monitor, 'use'>;
  guest: Pick<Connection, 'run'>;
  clock: Clock;
  /** Called on progress of a long-running change. */
  progress?: (() => void) | undefined;
}

const POLL_MS = 250;
/** On a busy host without hardware virtualization, a guest may be unresponsive for some seconds. */
const STALL_MS = 20_000;

/**
 * Polls a number until `isDone` or until it has not changed for a while; returns the last value.
 * @throws RdError `ERR_CANCELLED`, and any error of `read`.
 */
export async function pollUntilSettled(
  clock: Clock,
  read: () => Promise<number>,
  isDone: (value: number) => boolean,
  signal: AbortSignal,
): Promise<number> {
  let value = await read();
  let lastChange = clock.now();
  while (!isDone(value) && clock.now() - lastChange < STALL_MS) {
    await clock.sleep(POLL_MS, signal);
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for the guest to apply a change was canceled');
    const next = await read();
    if (next !== value) lastChange = clock.now();
    value = next;
  }
  return value;
}
