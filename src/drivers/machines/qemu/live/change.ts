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
/** Without hardware virtualization, on a busy host, a guest may be silent for some seconds. */
const STALL_MS = 20_000;

/**
 * Polls a number until it is good or has not changed for a while; returns the last value.
 * @throws RdError `ERR_CANCELLED`, and what `look` throws.
 */
export async function pollUntilSettled(
  clock: Clock,
  look: () => Promise<number>,
  isGood: (value: number) => boolean,
  signal: AbortSignal,
): Promise<number> {
  let value = await look();
  let moved = clock.now();
  while (!isGood(value) && clock.now() - moved < STALL_MS) {
    await clock.sleep(POLL_MS, signal);
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for the guest to apply a change was canceled');
    const next = await look();
    if (next !== value) moved = clock.now();
    value = next;
  }
  return value;
}
