import { setTimeout as delay } from 'node:timers/promises';

/** The clock of code that waits; tests bring their own. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Resolves after `ms`, or as soon as the signal aborts; the caller checks the signal. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch((error: unknown) => {
    if (!signal?.aborted) throw error;
  });
}

/** Milliseconds since the epoch: for timestamps, and to compare with them. */
export const systemClock: Clock = { now: () => Date.now(), sleep };

/** Milliseconds that only increase, even while the system's clock is set: for waits. */
export const steadyClock: Clock = { now: () => performance.now(), sleep };
