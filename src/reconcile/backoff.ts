import { ERRORS, RdError } from '../errors.ts';

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** Consecutive failures after which the loop gives up until the desired state changes: at most 15 seconds of waiting. */
export const MAX_ATTEMPTS = 6;

/** No path to a desired state repeats a step more often; an engine switch stops at most two. */
const MOST_SUCCESSES = 3;

/** The last failure, and whether it will be retried. */
export interface Failure {
  /** Name of the step, or `observation`. */
  what: string;
  error: RdError;
  /** Consecutive failures. */
  attempts: number;
  /** Nothing is retried until the desired state changes. */
  terminal: boolean;
}

/** Milliseconds that an attempt took, and the budget of all attempts of its kind. */
export interface Spent {
  ms: number;
  budgetMs: number;
}

/** Counts attempts since the backend last converged, or the desired state last changed. */
export interface Attempts {
  /**
   * Records a failure. Terminal if the error is not retryable, or the attempts or their time budget (`budgetMs`) are
   * used up.
   */
  failed(what: string, error: RdError, spent?: Spent): Failure;
  succeeded(what: string): void;
  /** An error if a step has succeeded so often that repeating it now would be a hot loop; a pause is due then. */
  fruitless(what: string): RdError | undefined;
  forget(): void;
}

export function createAttempts(): Attempts {
  const failures = new Map<string, number>();
  const time = new Map<string, number>();
  const successes = new Map<string, number>();
  return {
    failed(what, error, { ms, budgetMs } = { ms: 0, budgetMs: Number.POSITIVE_INFINITY }) {
      const attempts = (failures.get(what) ?? 0) + 1;
      const total = (time.get(what) ?? 0) + ms;
      failures.set(what, attempts);
      time.set(what, total);
      const terminal = !ERRORS[error.code].retry || attempts >= MAX_ATTEMPTS || total >= budgetMs;
      return { what, error, attempts, terminal };
    },
    succeeded(what) {
      successes.set(what, (successes.get(what) ?? 0) + 1);
    },
    fruitless(what) {
      const count = successes.get(what) ?? 0;
      if (count < MOST_SUCCESSES) return undefined;
      // After the pause it is performed once more.
      successes.set(what, MOST_SUCCESSES - 1);
      return new RdError('ERR_DRIVER_FAILED', `${what} succeeded ${MOST_SUCCESSES} times and is due again.`, {
        advice: 'Read the log of the service: what was started did not stay up.',
      });
    },
    forget() {
      failures.clear();
      time.clear();
      successes.clear();
    },
  };
}

/**
 * Milliseconds until the next attempt: doubling from half a second to at most half a minute, with jitter between half
 * and all of that, so that several waiters do not retry in step. `random` is in [0, 1).
 */
export function backoffMs(attempts: number, random: () => number): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, attempts - 1));
  return Math.round(whole * (0.5 + random() / 2));
}
