import { ERRORS, RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/backend.ts';
import { type Step, stepName } from './step.ts';

export const MINUTE_MS = 60_000;
/** Milliseconds that a started cluster may take to answer. */
export const CLUSTER_ANSWER_MS = 10 * MINUTE_MS;

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** Consecutive failures after which the loop gives up until the desired state changes: at most 15 seconds of waiting. */
export const MAX_ATTEMPTS = 6;

/** No path to a desired state repeats a step more often; an engine switch stops at most two. */
const MAX_SUCCESSES = 3;

/** The last failure, and whether it will be retried. */
export interface Failure {
  /** Name of the failed step, or `observation`. */
  what: string;
  error: RdError;
  /** Consecutive failures. */
  attempts: number;
  /** No retries until the desired state changes. */
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
  /** Returns an error if a step has succeeded so often that repeating it now would be a hot loop; a pause is due then. */
  hotLoopError(what: string): RdError | undefined;
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
    hotLoopError(what) {
      const count = successes.get(what) ?? 0;
      if (count < MAX_SUCCESSES) return undefined;
      // After the pause, the step may be performed once more.
      successes.set(what, MAX_SUCCESSES - 1);
      return new RdError('ERR_DRIVER_FAILED', `${what} succeeded ${MAX_SUCCESSES} times and is due again.`, {
        advice: 'Check the service log: what was started did not stay up.',
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
 * Returns the milliseconds until the next attempt: doubling from half a second to at most half a minute, with jitter
 * between half and all of that, so that several waiters do not retry in step. `random` is in [0, 1).
 */
export function backoffMs(attempts: number, random: () => number): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, attempts - 1));
  return Math.round(whole * (0.5 + random() / 2));
}

/** The work that the loop leaves alone after a terminal failure: the failed step, and anything it left behind. */
export interface GivenUp {
  /** A failure has ended the attempts; `step` is the failed one, if it was a step. */
  begin(step: Step | undefined, seen: Observed | undefined): void;
  /**
   * Called with each later observation. Returns true if the step is due for another reason than the failure. The first
   * observation shows the state that the failure left. Nothing that is on is ever stopped for such a reason: it may be
   * all that still works.
   */
  isUnrelated(step: Step | undefined, seen: Observed): boolean;
}

export function createGivenUp(): GivenUp {
  const left = new Set<string>();
  let looked = false;
  return {
    begin(step, seen) {
      left.clear();
      looked = false;
      if (step) left.add(reasonOf(step, seen));
    },
    isUnrelated(step, seen) {
      const reason = step && reasonOf(step, seen);
      if (!looked) {
        looked = true;
        if (reason !== undefined) left.add(reason);
        return false;
      }
      return step !== undefined && reason !== undefined && !left.has(reason) && isHarmless(step, seen);
    },
  };
}

/** Returns the reason that a step is due. A machine is adjusted for varying reasons. */
function reasonOf(step: Step, seen: Observed | undefined): string {
  const repair = step.part === 'machine' && seen?.machine.state === 'on' ? seen.machine.repair : undefined;
  return `${stepName(step)} ${repair ?? ''}`;
}

function isHarmless({ step: { do: what } }: Step, { machine }: Observed): boolean {
  return what === 'start' || what === 'adjust' || (what === 'stop' && machine.state === 'broken');
}

/** The `what` of the failure of a started cluster that does not answer. */
export const CLUSTER_ANSWER = 'cluster answer';

/** Measures how long a started cluster has not answered. */
export interface ClusterWait {
  /** Called with every observation of a cluster that is not ready, with the reason. Returns an error once it has taken too long. */
  look(reason?: string): RdError | undefined;
  /** Resets the wait, because the cluster answered or its time starts over. */
  forget(): void;
}

export function createClusterWait(clock: Clock): ClusterWait {
  let since: number | undefined;
  return {
    look(reason) {
      since ??= clock.now();
      if (clock.now() - since < CLUSTER_ANSWER_MS) return undefined;
      const text = `the cluster was started but has not responded for ${minutesText(CLUSTER_ANSWER_MS)}${reason === undefined ? '' : ` (${reason})`}; it is left running and monitored.`;
      return new RdError('ERR_DRIVER_TERMINAL', text, {
        advice:
          'Check its log (the cause is often memory or the network), then retry with `rdctl apply`, or set kubernetes.enabled to false.',
      });
    },
    forget() {
      since = undefined;
    },
  };
}

/** Formats `10 minutes` or `30 seconds`. */
export function minutesText(ms: number): string {
  return ms < MINUTE_MS ? `${ms / 1000} seconds` : `${ms / MINUTE_MS} minutes`;
}
