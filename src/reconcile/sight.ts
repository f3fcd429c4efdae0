import type { Driver } from '../drivers/driver.ts';
import type { Observed } from '../plan/observed.ts';
import type { Clock } from './clock.ts';
import { createLookers, type Lookers } from './lookers.ts';
import { observeInTime } from './observe.ts';

/** What the loop has seen of the backend, and who waits for it to look again. */
export interface Sight extends Pick<Lookers, 'ask' | 'end'> {
  /** Looks at everything now. Throws what a driver throws, and `ERR_DRIVER_FAILED` when the look is ended. */
  look(): Promise<Observed>;
  /** Somebody waits for a look, or one is due. */
  waiting(): boolean;
  /** Ends a look under way, because another will follow at once; those who asked for it get that one. */
  interrupt(): void;
  /** The last look that succeeded. */
  seen(): Observed | undefined;
  /** Something that was seen may have ended: a look is due at once. */
  doubt(): void;
  /** What was seen is not to be relied on, because something may have ended since the last look that succeeded began. */
  doubted(): boolean;
  /** Why what is there now is not known, as a clause; undefined after a look that succeeded. */
  trouble(): string | undefined;
}

export interface SightInput {
  driver: Driver;
  clock: Clock;
  /** Throws when nothing may be looked at now. */
  check(): void;
  /** Ends everything. */
  closing: AbortSignal;
  /** Called when somebody asks for a look, and when one is due. */
  wake(): void;
}

export function createSight({ driver, clock, check, closing, wake }: SightInput): Sight {
  const lookers = createLookers(wake);
  let seen: Observed | undefined;
  let trouble: string | undefined = 'the service has not looked at it yet';
  let looking: AbortController | undefined;
  let isDue = false;
  /** Counts what may have ended; `settled` of them were before a look that succeeded. */
  let doubts = 0;
  let settled = 0;
  return {
    ask: lookers.ask,
    waiting: () => isDue || lookers.waiting(),
    end: lookers.end,
    doubt() {
      doubts++;
      isDue = true;
      wake();
    },
    doubted: () => doubts > settled,
    seen: () => seen,
    trouble: () => trouble,
    interrupt: () => looking?.abort(),
    async look() {
      const abort = new AbortController();
      looking = abort;
      const turn = lookers.begin();
      const known = doubts;
      isDue = false;
      try {
        check();
        seen = await observeInTime(driver, clock, AbortSignal.any([abort.signal, closing]));
      } catch (error) {
        if (abort.signal.aborted) {
          turn.again();
        } else {
          trouble = `the last look at it failed: ${clause(error)}`;
          turn.end(false);
        }
        throw error;
      } finally {
        looking = undefined;
      }
      trouble = undefined;
      settled = known;
      turn.end(true);
      return seen;
    },
  };
}

function clause(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\.$/, '');
}
