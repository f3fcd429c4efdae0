import type { Driver } from '../drivers/driver.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/observed.ts';
import { observeInTime } from './observe.ts';

/** The loop's observations, and the callers waiting for a new one. */
export interface Sight extends Pick<Lookers, 'end'> {
  /** Observes everything now. Throws the drivers' errors, and `ERR_DRIVER_FAILED` when interrupted. */
  look(): Promise<Observed>;
  /** An observation was requested or is due. */
  waiting(): boolean;
  /** Interrupts a running observation, because another follows at once; its callers get that one. */
  interrupt(): void;
  /** The last successful observation. */
  seen(): Observed | undefined;
  /** Like `Lookers.ask`; retries a failed observation while `isHopeful`. */
  ask(signal: AbortSignal, isHopeful: () => boolean): Promise<boolean>;
  /** An observed part may have exited: an observation is due at once. */
  doubt(): void;
  /** A part may have exited since the last successful observation began, so it is stale. */
  doubted(): boolean;
  /** Why the current state is unknown, as a clause; undefined after a successful observation. */
  trouble(): string | undefined;
}

export interface SightInput {
  driver: Driver;
  clock: Clock;
  /** Throws when the backend must not be observed now. */
  check(): void;
  /** Ends everything. */
  closing: AbortSignal;
  /** Called when an observation is requested or due. */
  wake(): void;
}

/** Retry interval of a failed observation for callers that wait for a successful one. */
const AGAIN_MS = 500;

export function createSight({ driver, clock, check, closing, wake }: SightInput): Sight {
  const lookers = createLookers(wake);
  let seen: Observed | undefined;
  let trouble: string | undefined = 'the service has not looked at it yet';
  let looking: AbortController | undefined;
  let isDue = false;
  /** Counts possible exits; `settled` of them precede a successful observation. */
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

/** Callers waiting for an observation that begins after their request. */
interface Lookers {
  /** True once such an observation has succeeded; false when it failed, the signal aborted, or the loop has ended. */
  ask(signal: AbortSignal): Promise<boolean>;
  /** Some request has no observation yet. */
  waiting(): boolean;
  /** An observation begins, for all requests so far. */
  begin(): Turn;
  /** There will be no more observations. */
  end(): void;
}

/** One observation. */
interface Turn {
  /** Reports the result to the callers. */
  end(ok: boolean): void;
  /** It was interrupted: the callers wait for the next one. */
  again(): void;
}

type Answer = (ok: boolean) => void;

/** @param wake is called on each request. */
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
