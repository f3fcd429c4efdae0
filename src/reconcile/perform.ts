import type { ClusterSpec, ClusterStep, Driver } from '../drivers/driver.ts';
import { messageOf, RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import { installedVersion, type Observed } from '../plan/backend.ts';
import { MINUTE_MS, minutesText, type Spent } from './attempts.ts';
import { type Step, type StepName, stepName } from './step.ts';

/** Dispatches a step to its driver and passes on `progress` and `onWait`; throws the driver's errors. */
async function perform(
  step: Step,
  seen: Observed,
  driver: Driver,
  signal: AbortSignal,
  { progress, onWait }: { progress(): void; onWait(what: string): void },
): Promise<void> {
  switch (step.part) {
    case 'machine':
      return driver.machine.perform(step.step, signal, progress);
    case 'engine':
      return driver.engines[step.engine].perform(step.step, signal);
    case 'cluster':
      return performCluster(step.step, seen, driver, signal, onWait);
  }
}

/**
 * Performs a step; a start with an empty version gets the installed one, so that nothing is upgraded unasked, or the
 * newest available. The choice shows as the running cluster's version and is not written to the settings.
 */
async function performCluster(
  step: ClusterStep,
  seen: Observed,
  driver: Driver,
  signal: AbortSignal,
  onWait: (what: string) => void,
): Promise<void> {
  if (!driver.cluster) throw new RdError('ERR_INTERNAL', `The ${driver.name} driver has no cluster to ${step.do}.`);
  if (step.do !== 'start') return driver.cluster.perform(step, signal);
  const version = await chosenVersion(step.spec, seen, driver, signal);
  await driver.cluster.perform({ do: 'start', spec: { ...step.spec, version } }, signal, onWait);
}

async function chosenVersion(spec: ClusterSpec, seen: Observed, driver: Driver, signal: AbortSignal): Promise<string> {
  const known = spec.version || installedVersion(seen);
  if (known) return known;
  const newest = (await driver.cluster?.versions(signal))?.[0];
  if (newest) return newest;
  throw new RdError('ERR_DRIVER_FAILED', `The ${driver.name} driver has no cluster version to offer.`, {
    advice: 'Check the network, or set kubernetes.version, or set kubernetes.enabled to false.',
  });
}

/** Returns a driver's error, prefixed with the step. Anything but an `RdError` is a bug and becomes `ERR_INTERNAL`. */
export function failureOf(what: string, driver: Driver, error: unknown): RdError {
  const text = messageOf(error);
  const known = error instanceof RdError ? error : undefined;
  return new RdError(known?.code ?? 'ERR_INTERNAL', `${what} failed with the ${driver.name} driver: ${text}`, {
    cause: error,
    ...(known?.advice === undefined ? {} : { advice: known.advice }),
    ...(known === undefined ? {} : { details: known.details }),
  });
}

export interface PerformInput {
  step: Step;
  seen: Observed;
  driver: Driver;
  clock: Clock;
  /** Cancels the step; also aborted here on timeout. */
  abort: AbortController;
  /** True if a step that reports progress may extend its limit. */
  mayExtend(): boolean;
  /** Called with the reason for a wait, as a clause. */
  onWait(what: string): void;
}

/**
 * The end of a step. `spent` counts a cancelled one with its whole limit. `dropped`: cancelled by the caller, and over.
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
  mayExtend,
  onWait,
}: PerformInput): Promise<StepOutcome> {
  const name = stepName(step);
  const limit = STEP_LIMITS_MS[name];
  const ended = new AbortController();
  const begun = clock.now();
  let since = begun;
  const progress = () => {
    if (mayExtend()) since = clock.now();
  };
  const failed = (error: RdError, ms: number): StepOutcome => ({
    how: 'failed',
    error,
    spent: { ms, budgetMs: ATTEMPTS_BUDGET * limit },
  });
  let late = false;
  const work = perform(step, seen, driver, abort.signal, { progress, onWait }).then(
    (): StepOutcome => ({ how: 'done' }),
    (error: unknown): StepOutcome => {
      const ms = clock.now() - since;
      if (!late) return abort.signal.aborted ? { how: 'dropped' } : failed(failureOf(name, driver, error), ms);
      const failure = since === begun ? 'finish within' : 'make progress for';
      // A timer may fire slightly early, and the second timeout has to be the last.
      return failed(tooLate(`${name} did not ${failure}`, limit, driver, error), Math.max(ms, limit));
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
  const stuck = waitForAbort(abort.signal)
    .then(() => clock.sleep(GRACE_MS, ended.signal))
    .then((): StepOutcome => ({ how: 'stuck', error: stuckStepError(name, driver), over: work.then(() => undefined) }));
  const ending = await Promise.race([work, stuck]);
  ended.abort();
  return ending;
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/**
 * Returns the error of a step that exceeded its limit. `cause`: the driver's error on cancellation. If it has advice, it knows how far the step got.
 */
function tooLate(what: string, limit: number, driver: Driver, cause: unknown): RdError {
  const text = `${what} ${minutesText(limit)} with the ${driver.name} driver and was canceled`;
  if (cause instanceof RdError && cause.code === 'ERR_CANCELLED' && cause.advice !== undefined) {
    return new RdError('ERR_DRIVER_FAILED', `${text}: ${cause.message}.`, { cause, advice: cause.advice });
  }
  return new RdError('ERR_DRIVER_FAILED', `${text}.`, {
    cause,
    advice: 'Check the logs of the service and of the engine, and fix the problem.',
  });
}

function stuckStepError(name: string, driver: Driver): RdError {
  const text = `${name} was canceled but is still running with the ${driver.name} driver; nothing else is done in the meantime.`;
  return new RdError('ERR_DRIVER_TERMINAL', text, {
    advice: 'Wait for it to finish, or restart the service: rdctl shutdown, then rdctl start.',
  });
}

/**
 * Limits of the steps in milliseconds. Generous: they end what hangs, and must not end what is slow. A machine or a
 * cluster may have to download first; a moby engine waits a minute for its containerd and two for itself.
 * `docs/conditions.md` lists the same numbers.
 */
export const STEP_LIMITS_MS = {
  'machine start': 10 * MINUTE_MS,
  'machine stop': 2 * MINUTE_MS,
  'machine adjust': 2 * MINUTE_MS,
  'engine start': 5 * MINUTE_MS,
  'engine stop': 2 * MINUTE_MS,
  'engine adjust': 2 * MINUTE_MS,
  'cluster start': 10 * MINUTE_MS,
  'cluster stop': 2 * MINUTE_MS,
  'cluster reset': 5 * MINUTE_MS,
} as const satisfies Record<StepName, number>;

/** Time budget of all attempts of one step, as a multiple of its limit; after that the failure is reported. */
const ATTEMPTS_BUDGET = 2;

/** Grace period for a cancelled step. */
export const GRACE_MS = 30_000;
