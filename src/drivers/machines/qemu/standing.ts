import type { Clock } from '../../../os/clock.ts';
import type { Look } from '../../driver.ts';

/** The last observation of a part of the guest, which may stand for a `routine` one: an idle guest notices every query. */
export interface Standing<T> {
  observe(signal: AbortSignal, how?: Look): Promise<T>;
  /** Does work that changes the part, after which no observation stands. */
  change<R>(work: () => Promise<R>): Promise<R>;
  /** Drops the observation, because the part may be another one, as after a start of the machine. */
  forget(): void;
}

/**
 * Creates the observation.
 * @param standsMs returns the milliseconds for which the last observation may stand, as known now.
 */
export function standing<T>(
  clock: Pick<Clock, 'now'>,
  observe: (signal: AbortSignal, how?: Look) => Promise<T>,
  standsMs: (seen: T, signal: AbortSignal) => Promise<number>,
): Standing<T> {
  let last: { seen: T; at: number } | undefined;
  /** Counts possible changes of the part: an observation that one interrupts does not stand. */
  let changes = 0;

  function forget(): void {
    last = undefined;
    changes += 1;
  }

  return {
    forget,
    async observe(signal, how) {
      const known = last;
      if (how === 'routine' && known !== undefined) {
        const stands = clock.now() - known.at < (await standsMs(known.seen, signal));
        if (stands && last === known) return known.seen;
      }
      const [before, at] = [changes, clock.now()];
      last = undefined;
      const seen = await observe(signal, how);
      if (before === changes) last = { seen, at };
      return seen;
    },
    async change(work) {
      forget();
      return work().finally(forget);
    },
  };
}
