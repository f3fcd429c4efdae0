import type { Driver } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/observed.ts';
import type { Spent } from './backoff.ts';
import { failureOf, perform } from './perform.ts';
import { type Step, stepName } from './step.ts';
import { ATTEMPTS_BUDGET, GRACE_MS, minutesText, STEP_LIMITS_MS } from './step-limits.ts';

export interface PerformInput {
  step: Step;
  seen: Observed;
  driver: Driver;
  clock: Clock;
  /** Cancels the step; also aborted here on timeout. */
  abort: AbortController;
  /** Whether a step that reports progress may extend its limit. */
  isPatient(): boolean;
}

/**
 * How a step ended. `spent` counts a cancelled one with its whole limit. `dropped`: cancelled by the caller, and over.
 * `stuck`: cancelled and still running after the grace period; `over` resolves when it has ended after all, and until
 * then its state is unknown.
 */
export type StepOutcome =
  | { how: 'done' }
  | { how: 'dropped' }
  | { how: 'failed'; error: RdError; spent: Spent }
  | { how: 'stuck'; error: RdError; over: Promise<void> };

/** Performs a step within its limit, which progress extends, plus the grace period. Never throws. */
export async function performInTime({
  step,
  seen,
  driver,
  clock,
  abort,
  isPatient,
}: PerformInput): Promise<StepOutcome> {
  const name = stepName(step);
  const limit = STEP_LIMITS_MS[name];
  const ended = new AbortController();
  const begun = clock.now();
  let since = begun;
  const progress = () => {
    if (isPatient()) since = clock.now();
  };
  const failed = (error: RdError, ms: number): StepOutcome => ({
    how: 'failed',
    error,
    spent: { ms, budgetMs: ATTEMPTS_BUDGET * limit },
  });
  let late = false;
  const work = perform(step, seen, driver, abort.signal, progress).then(
    (): StepOutcome => ({ how: 'done' }),
    (error: unknown): StepOutcome => {
      const ms = clock.now() - since;
      if (!late) return abort.signal.aborted ? { how: 'dropped' } : failed(failureOf(name, driver, error), ms);
      const lacking = since === begun ? 'end within' : 'get any further for';
      // A timer may fire slightly early, and the second timeout has to be the last.
      return failed(tooLate(`${name} did not ${lacking}`, limit, driver, error), Math.max(ms, limit));
    },
  );
  const watch = async () => {
    do await clock.sleep(since + limit - clock.now(), ended.signal);
    while (!ended.signal.aborted && clock.now() < since + limit);
    if (ended.signal.aborted) return;
    late = true;
    abort.abort();
  };
  void watch();
  const stuck = aborted(abort.signal)
    .then(() => clock.sleep(GRACE_MS, ended.signal))
    .then((): StepOutcome => ({ how: 'stuck', error: stuckStepError(name, driver), over: work.then(() => undefined) }));
  const ending = await Promise.race([work, stuck]);
  ended.abort();
  return ending;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** `cause`: the driver's error on cancellation. If it has advice, it knows how far the step got. */
function tooLate(what: string, limit: number, driver: Driver, cause: unknown): RdError {
  const text = `${what} ${minutesText(limit)} with the ${driver.name} driver and was called off`;
  if (cause instanceof RdError && cause.code === 'ERR_CANCELLED' && cause.advice !== undefined) {
    return new RdError('ERR_DRIVER_FAILED', `${text}: ${cause.message}.`, { cause, advice: cause.advice });
  }
  return new RdError('ERR_DRIVER_FAILED', `${text}.`, {
    cause,
    advice: 'Read the logs of the service and of the engine, and put right what they name.',
  });
}

function stuckStepError(name: string, driver: Driver): RdError {
  const text = `${name} was called off and still has not ended with the ${driver.name} driver; nothing else is done meanwhile.`;
  return new RdError('ERR_DRIVER_TERMINAL', text, {
    advice: 'Wait for it to end, or restart the service: rdctl shutdown, then rdctl start.',
  });
}
