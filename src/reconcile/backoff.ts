import { ERRORS, RdError } from '../errors.ts';

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** After this many failures in a row the loop gives up until somebody changes something: 15 seconds of waiting, or less. */
export const MAX_ATTEMPTS = 6;

/** No way to a desired state takes the same step more often; a switch of engine stops two at most. */
const MOST_SUCCESSES = 3;

/** What went wrong last, and whether it will be tried again. */
export interface Failure {
  /** Name of the step, or `observation`. */
  what: string;
  error: RdError;
  /** Failures in a row. */
  attempts: number;
  /** Waits for a change of the desired state; nothing is tried any more. */
  terminal: boolean;
}

/** Milliseconds that an attempt took, and that all attempts of its kind may take together. */
export interface Spent {
  ms: number;
  budgetMs: number;
}

/** Counts what was tried since the backend was last as desired, or the desired state last changed. */
export interface Attempts {
  /**
   * Notes a failure. Terminal if the error cannot heal by itself, or the attempts are used up: their number, or the time that
   * all of them took, of which `budgetMs` is enough.
   */
  failed(what: string, error: RdError, spent?: Spent): Failure;
  succeeded(what: string): void;
  /** An error if a step succeeded so often that doing it at once again would be a hot loop; then a pause is due. */
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
      // After the pause it is done once more.
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
 * Milliseconds until the next attempt: doubling from half a second, at most half a minute, and between half and all of that, so
 * that several waiters do not come back at the same moment. `random` is in [0, 1).
 */
export function backoffMs(attempts: number, random: () => number): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, attempts - 1));
  return Math.round(whole * (0.5 + random() / 2));
}
