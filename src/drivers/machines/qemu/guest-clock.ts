import type { Clock } from '../../../os/clock.ts';
import type { Connection } from './guest.ts';

/** Corrects the guest clock, which misses the time that the host slept or the guest was halted. */
export interface GuestClock {
  /** Checks occasionally, because a check runs a program in the guest. */
  isOff(signal: AbortSignal): Promise<boolean>;
  set(signal: AbortSignal): Promise<void>;
  /** Forces a check on the next call. */
  forget(): void;
}

const LOOK_MS = 60_000;
const LIMIT_S = 5;

export function createGuestClock(guest: Pick<Connection, 'run'>, clock: Clock): GuestClock {
  let seen: { at: number; off: boolean } | undefined;
  return {
    async isOff(signal) {
      if (seen && !seen.off && clock.now() - seen.at < LOOK_MS) return false;
      const before = seconds();
      const { stdout } = await guest.run(['date', '+%s'], { signal });
      const there = Number(stdout.trim());
      const off = there < before - LIMIT_S || there > seconds() + LIMIT_S;
      seen = { at: clock.now(), off };
      return off;
    },
    async set(signal) {
      await guest.run(['date', '-u', '-s', `@${seconds()}`], { signal });
      seen = undefined;
    },
    forget() {
      seen = undefined;
    },
  };
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
