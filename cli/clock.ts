import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../src/reconcile/clock.ts';

/** Real time, for commands that wait. */
export const wallClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    await delay(ms, undefined, { signal }).catch(() => undefined);
  },
};
