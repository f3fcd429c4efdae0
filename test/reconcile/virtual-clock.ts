import type { Clock } from '../../src/os/clock.ts';

/** A clock whose time passes only when something sleeps (`auto`) or when the test says so. */
export interface VirtualClock extends Clock {
  /** Lets time pass, waking sleepers in order, and runs everything that follows. */
  advance(ms: number): Promise<void>;
  /** Runs everything that needs no time. */
  turn(): Promise<void>;
  /** How many are asleep. */
  sleepers(): number;
}

interface Sleeper {
  at: number;
  wake(): void;
}

export function createVirtualClock({ auto = false } = {}): VirtualClock {
  let time = Date.UTC(2030, 0, 1);
  let asleep: Sleeper[] = [];
  const turn = async () => {
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
  };
  const earliest = () => asleep.toSorted((a, b) => a.at - b.at)[0];
  let pumping = false;
  /**
   * Wakes one sleeper at a time, the earliest first, so that time never skips one; and so late that whoever looks at each pass of the event
   * loop has looked.
   */
  const pump = () => {
    if (!auto || pumping || asleep.length === 0) return;
    pumping = true;
    void turn().then(() => {
      pumping = false;
      const next = earliest();
      if (next) time = Math.max(time, next.at);
      next?.wake();
      pump();
    });
  };
  return {
    now: () => time,
    turn,
    sleepers: () => asleep.length,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const sleeper: Sleeper = {
          at: time + ms,
          wake() {
            asleep = asleep.filter((other) => other !== sleeper);
            signal?.removeEventListener('abort', sleeper.wake);
            resolve();
          },
        };
        asleep.push(sleeper);
        signal?.addEventListener('abort', sleeper.wake, { once: true });
        pump();
      }),
    async advance(ms) {
      const until = time + ms;
      await turn();
      for (;;) {
        const next = earliest();
        if (!next || next.at > until) break;
        time = next.at;
        next.wake();
        await turn();
      }
      time = until;
    },
  };
}
