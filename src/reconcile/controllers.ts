import { isDeepStrictEqual } from 'node:util';
import type { Driver, DriverContext } from '../drivers/driver.ts';
import type { RdError } from '../errors.ts';
import type { Observed } from '../plan/observed.ts';
import { goalOf } from '../plan/spec.ts';
import { backendState } from './backend-state.ts';
import { backoffMs, createAttempts, type Failure } from './backoff.ts';
import type { Clock } from './clock.ts';
import { conditionsOf } from './conditions.ts';
import type { Controllers, Desired } from './contract.ts';
import { observeInTime, reckoned, unseen } from './observe.ts';
import { failureOf, isFutile, perform } from './perform.ts';
import { createPhaseLog } from './phases.ts';
import type { LoopStatus } from './status.ts';
import { isReady, nextStep, type Step, stepName } from './step.ts';

/** How long a converged loop waits before it looks for drift, and how often it asks for a cluster that is coming up. */
export const IDLE_MS = 5_000;
const POLL_MS = 1_000;

export interface ControllersInput {
  driver: Driver;
  desired: Desired;
  clock: Clock;
  /** In [0, 1); spreads the retries. */
  random: () => number;
  log: DriverContext['log'];
}

/**
 * Starts the loop: look, decide one step, perform it, look again. It rests when nothing is left to do and looks again after
 * `IDLE_MS`, so it repairs what broke by itself. A failed step is tried again with growing pauses; an error that cannot heal,
 * or the last attempt, ends in state `ERROR` until `desire` is called. `desire` ends every pause at once and calls off a
 * start that has become futile; `close` calls off any start.
 */
export function createControllers({ driver, desired: initial, clock, random, log }: ControllersInput): Controllers {
  const closing = new AbortController();
  const listeners = new Set<(status: LoopStatus) => void>();
  const phases = createPhaseLog(clock);
  const attempts = createAttempts();
  const counters = { steps: 0, restarts: 0, resets: 0, failures: 0 };
  let desired = initial;
  let goal = goalOf(desired.settings, desired.power, driver);
  let seen: Observed | undefined;
  let failure: Failure | undefined;
  let underway: { step: Step; abort: AbortController } | undefined;
  /** The present desired state has been looked at since it was set. */
  let fresh = false;
  /** Version of the desired state that was last worked on to the end. */
  let observedGeneration = 0;
  /** The backend was ready, and what happens now interrupts that. */
  let serving = false;
  let nudged = false;
  let resting: AbortController | undefined;
  let published = snapshot([]);
  const ended = run();

  return {
    desire(next) {
      goal = goalOf(next.settings, next.power, driver);
      desired = next;
      failure = undefined;
      attempts.forget();
      fresh = false;
      nudged = true;
      phases.restart();
      if (underway && isFutile(underway.step, goal, driver)) underway.abort.abort();
      resting?.abort();
      publish();
    },
    status: () => published,
    observed: () => reckoned(seen ?? unseen(driver), underway?.step),
    quiesce: (signal) =>
      new Promise((resolve) => {
        const finish = () => {
          listeners.delete(look);
          for (const end of ends) end.removeEventListener('abort', finish);
          resolve(published);
        };
        const ends = [signal, closing.signal];
        const look = () => {
          if (isSettled()) finish();
        };
        if (isSettled() || ends.some((end) => end.aborted)) return finish();
        listeners.add(look);
        for (const end of ends) end.addEventListener('abort', finish, { once: true });
      }),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      closing.abort();
      if (underway?.step.step.do === 'start') underway.abort.abort();
      resting?.abort();
      await ended;
    },
  };

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      nudged = false;
      const pause = await pass().catch((error: unknown) => retry('loop', failureOf('loop', driver, error)));
      publish();
      if (pause > 0) await rest(pause);
    }
  }

  /** One look and at most one step. Returns the milliseconds until the next. */
  async function pass(): Promise<number> {
    try {
      seen = await observeInTime(driver, clock, closing.signal);
    } catch (error) {
      if (closing.signal.aborted) return 0;
      return retry('observation', failureOf('observation', driver, error));
    }
    if (failure?.what === 'observation') failure = undefined;
    if (nudged) return 0;
    fresh = true;
    const step = nextStep(goal, seen, driver);
    if (!step) return rested(isReady(goal, seen));
    if (failure?.terminal) return IDLE_MS;
    const fruitless = attempts.fruitless(stepName(step));
    if (fruitless) return retry(stepName(step), fruitless);
    return act(step, seen);
  }

  function rested(ready: boolean): number {
    failure = undefined;
    if (!ready) return POLL_MS;
    attempts.forget();
    observedGeneration = desired.generation;
    serving = goal.on;
    return IDLE_MS;
  }

  async function act(step: Step, before: Observed): Promise<number> {
    const abort = new AbortController();
    underway = { step, abort };
    if (serving && step.step.do !== 'adjust') {
      if (goal.on) counters.restarts++;
      serving = false;
    }
    const end = phases.begin(stepName(step));
    publish();
    try {
      await perform(step, before, driver, abort.signal);
    } catch (error) {
      underway = undefined;
      end(abort.signal.aborted ? 'dropped' : 'failed');
      if (abort.signal.aborted || nudged) return 0;
      return retry(stepName(step), failureOf(stepName(step), driver, error));
    }
    underway = undefined;
    end('done');
    counters.steps++;
    if (step.part === 'cluster' && step.step.do === 'reset') counters.resets++;
    log('info', 'step done', { step: stepName(step), generation: desired.generation });
    attempts.succeeded(stepName(step));
    failure = undefined;
    return 0;
  }

  function retry(what: string, error: RdError): number {
    counters.failures++;
    failure = attempts.failed(what, error);
    const { terminal } = failure;
    const values = { step: what, attempts: failure.attempts, terminal, code: error.code, error: error.message };
    log('warn', 'step failed', values);
    if (!terminal) return backoffMs(failure.attempts, random);
    observedGeneration = desired.generation;
    return IDLE_MS;
  }

  async function rest(ms: number): Promise<void> {
    if (nudged || closing.signal.aborted) return;
    resting = new AbortController();
    await clock.sleep(ms, resting.signal);
    resting = undefined;
  }

  function isSettled(): boolean {
    return (
      published.observedGeneration === desired.generation && (published.converged || published.backendState === 'ERROR')
    );
  }

  function publish(): void {
    const next = snapshot(published.conditions);
    if (isDeepStrictEqual(next, published)) return;
    published = next;
    for (const listener of [...listeners]) listener(published);
  }

  function snapshot(before: LoopStatus['conditions']): LoopStatus {
    const now = new Date(clock.now()).toISOString();
    const { generation } = desired;
    const settled = fresh && underway === undefined;
    const conditions = conditionsOf({ goal, seen, driver, failure, fresh: settled, generation, now }, before);
    const failed = failure?.terminal === true;
    return {
      power: desired.power,
      generation,
      observedGeneration,
      converged: conditions.some(({ type, status }) => type === 'Converged' && status === 'True'),
      backendState: backendState({ goal, seen, driver, underway: underway?.step, failed }),
      conditions,
      ...(seen ?? unseen(driver)),
      phases: phases.list(),
      counters: { ...counters },
    };
  }
}
