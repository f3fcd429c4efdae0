import type { Clock } from '../../src/reconcile/clock.ts';

/** A clock whose time passes only when somebody sleeps (`auto`) or when the test says so. */
export interface VirtualClock extends Clock {
  /** Lets time pass, waking sleepers in order, and lets everything that follows from it happen. */
  advance(ms: number): Promise<void>;
  /** Lets everything happen that needs no time. */
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
  return {
    now: () => time,
    turn,
    sleepers: () => asleep.length,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const sleeper: Sleeper = {
          at: time + ms,
          wake() {
            asleep = asleep.filter((other) => other !== sleeper);
            signal.removeEventListener('abort', sleeper.wake);
            resolve();
          },
        };
        asleep.push(sleeper);
        signal.addEventListener('abort', sleeper.wake, { once: true });
        if (!auto) return;
        setImmediate(() => {
          if (!asleep.includes(sleeper)) return;
          time = Math.max(time, sleeper.at);
          sleeper.wake();
        });
      }),
    async advance(ms) {
      const until = time + ms;
      await turn();
      for (;;) {
        const next = asleep.filter((sleeper) => sleeper.at <= until).sort((a, b) => a.at - b.at)[0];
        if (!next) break;
        time = next.at;
        next.wake();
        await turn();
      }
      time = until;
    },
  };
}
