import type { Clock } from '../../src/os/clock.ts';

/** Time that passes only when a test says so. */
export interface SteppedClock extends Clock {
  /** Lets time pass, and everything that then wakes up run. */
  pass(ms: number): Promise<void>;
  /** How many are asleep. */
  sleepers(): number;
}

export function steppedClock(start = 0): SteppedClock {
  let now = start;
  let asleep: { until: number; wake(): void }[] = [];
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const sleeper = {
          until: now + ms,
          wake() {
            asleep = asleep.filter((each) => each !== sleeper);
            signal?.removeEventListener('abort', sleeper.wake);
            resolve();
          },
        };
        if (signal?.aborted) return resolve();
        asleep.push(sleeper);
        signal?.addEventListener('abort', sleeper.wake);
      }),
    sleepers: () => asleep.length,
    async pass(ms) {
      const end = now + ms;
      await settle();
      for (;;) {
        const next = asleep.filter(({ until }) => until <= end).sort((a, b) => a.until - b.until)[0];
        if (!next) break;
        now = next.until;
        next.wake();
        await settle();
      }
      now = end;
    },
  };
}
