import type { Driver } from '../drivers/driver.ts';
import type { Observed } from '../plan/observed.ts';
import type { Clock } from './clock.ts';
import { observeInTime } from './observe.ts';

/** What the loop has seen of the backend, and who waits for it to look again. */
export interface Sight extends Pick<Lookers, 'end'> {
  /** Looks at everything now. Throws what a driver throws, and `ERR_DRIVER_FAILED` when the look is ended. */
  look(): Promise<Observed>;
  /** Somebody waits for a look, or one is due. */
  waiting(): boolean;
  /** Ends a look under way, because another will follow at once; those who asked for it get that one. */
  interrupt(): void;
  /** The last look that succeeded. */
  seen(): Observed | undefined;
  /** As `Lookers.ask`; asks again after a look that failed for as long as `isHopeful`. */
  ask(signal: AbortSignal, isHopeful: () => boolean): Promise<boolean>;
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

/** Between a look that failed and the next one for those who wait for one that does not. */
const AGAIN_MS = 500;

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
    async ask(signal, isHopeful) {
      const end = AbortSignal.any([signal, closing]);
      while (!(await lookers.ask(signal))) {
        if (end.aborted || !isHopeful()) return false;
        await clock.sleep(AGAIN_MS, end);
      }
      return true;
    },
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

/** Those who wait for a look at the backend that begins after they asked. */
interface Lookers {
  /** True once such a look has succeeded; false when it failed, the signal aborted, or the loop has ended. */
  ask(signal: AbortSignal): Promise<boolean>;
  /** Somebody waits whom no look has been begun for. */
  waiting(): boolean;
  /** A look begins, for everyone who has asked by now. */
  begin(): Turn;
  /** There will be no more looks. */
  end(): void;
}

/** One look. */
interface Turn {
  /** Tells them how it ended. */
  end(ok: boolean): void;
  /** It was ended early: they wait for the next. */
  again(): void;
}

type Answer = (ok: boolean) => void;

/** @param wake is called when somebody asks. */
function createLookers(wake: () => void): Lookers {
  let asking = new Set<Answer>();
  let ended = false;
  const tell = (asked: ReadonlySet<Answer>, ok: boolean) => {
    for (const answer of [...asked]) answer(ok);
  };
  return {
    ask: (signal) =>
      new Promise((resolve) => {
        if (ended || signal.aborted) return resolve(false);
        const answer: Answer = (ok) => {
          asking.delete(answer);
          signal.removeEventListener('abort', giveUp);
          resolve(ok);
        };
        const giveUp = () => answer(false);
        signal.addEventListener('abort', giveUp, { once: true });
        asking.add(answer);
        wake();
      }),
    waiting: () => asking.size > 0,
    begin() {
      const asked = asking;
      asking = new Set();
      return {
        end: (ok) => tell(asked, ok),
        again() {
          if (ended) tell(asked, false);
          else for (const answer of asked) asking.add(answer);
        },
      };
    },
    end() {
      ended = true;
      tell(asking, false);
    },
  };
}
