import type { Driver } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import type { Observed } from '../plan/observed.ts';
import type { Spent } from './backoff.ts';
import type { Clock } from './clock.ts';
import { failureOf, perform } from './perform.ts';
import { type Step, stepName } from './step.ts';
import { ATTEMPTS_BUDGET, GRACE_MS, minutesText, STEP_LIMITS_MS } from './step-limits.ts';

export interface PerformInput {
  step: Step;
  seen: Observed;
  driver: Driver;
  clock: Clock;
  /** Calls the step off; also aborted here, when the time is up. */
  abort: AbortController;
}

/**
 * How a step ended. `spent` counts one that was called off with its whole limit. `dropped`: called off by somebody else, and over. `stuck`: called off and still at work after the grace;
 * `over` resolves when it has ended after all, and until then nobody knows what it does.
 */
export type Ending =
  | { how: 'done' }
  | { how: 'dropped' }
  | { how: 'failed'; error: RdError; spent: Spent }
  | { how: 'stuck'; error: RdError; over: Promise<void> };

/** Performs a step for at most its limit and the grace together. Never throws. */
export async function performInTime({ step, seen, driver, clock, abort }: PerformInput): Promise<Ending> {
  const name = stepName(step);
  const limit = STEP_LIMITS_MS[name];
  const ended = new AbortController();
  const begun = clock.now();
  const failed = (error: RdError, ms: number): Ending => ({
    how: 'failed',
    error,
    spent: { ms, budgetMs: ATTEMPTS_BUDGET * limit },
  });
  let late = false;
  const work = perform(step, seen, driver, abort.signal).then(
    (): Ending => ({ how: 'done' }),
    (error: unknown): Ending => {
      const ms = clock.now() - begun;
      // A timer may fire a moment early, and the second time-out has to be the last.
      if (late) return failed(tooLate(name, limit, driver, error), Math.max(ms, limit));
      return abort.signal.aborted ? { how: 'dropped' } : failed(failureOf(name, driver, error), ms);
    },
  );
  clock.sleep(limit, ended.signal).then(() => {
    if (ended.signal.aborted) return;
    late = true;
    abort.abort();
  });
  const stuck = aborted(abort.signal)
    .then(() => clock.sleep(GRACE_MS, ended.signal))
    .then((): Ending => ({ how: 'stuck', error: stillAtWork(name, driver), over: work.then(() => undefined) }));
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

/** `cause`: what the driver made of being called off. With advice it knows how far the step has come. */
function tooLate(name: string, limit: number, driver: Driver, cause: unknown): RdError {
  const text = `${name} did not end within ${minutesText(limit)} with the ${driver.name} driver and was called off`;
  if (cause instanceof RdError && cause.code === 'ERR_CANCELLED' && cause.advice !== undefined) {
    return new RdError('ERR_DRIVER_FAILED', `${text}: ${cause.message}.`, { cause, advice: cause.advice });
  }
  return new RdError('ERR_DRIVER_FAILED', `${text}.`, {
    cause,
    advice: 'Read the logs of the service and of the engine, and put right what they name.',
  });
}

function stillAtWork(name: string, driver: Driver): RdError {
  const text = `${name} was called off and still has not ended with the ${driver.name} driver; nothing else is done meanwhile.`;
  return new RdError('ERR_DRIVER_TERMINAL', text, {
    advice: 'Wait for it to end, or restart the service: rdctl shutdown, then rdctl start.',
  });
}
