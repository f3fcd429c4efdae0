import { RdError } from '../../../../errors.ts';
import type { Pace } from '../../../../process/pace.ts';

const POLL_MS = 250;
/** Without the help of a processor, on a busy computer, a guest may be silent for some seconds. */
const STALL_MS = 20_000;

/**
 * Looks at a number until it is good, or until it has not moved for a while; the last one that was seen.
 * @throws RdError `ERR_CANCELLED`, and what `look` throws.
 */
export async function settled(
  pace: Pace,
  look: () => Promise<number>,
  isGood: (value: number) => boolean,
  signal: AbortSignal,
): Promise<number> {
  let value = await look();
  let moved = pace.now();
  while (!isGood(value) && pace.now() - moved < STALL_MS) {
    await pace.sleep(POLL_MS, signal);
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for the guest to take a change was cancelled');
    const next = await look();
    if (next !== value) moved = pace.now();
    value = next;
  }
  return value;
}
