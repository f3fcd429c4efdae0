import { isDeepStrictEqual } from 'node:util';
import type { Driver, DriverContext } from '../drivers/driver.ts';
import type { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/observed.ts';
import { assumed } from './assumed.ts';
import { backendState } from './backend-state.ts';
import { backoffMs, createAttempts, type Failure, type Spent } from './backoff.ts';
import { CLUSTER_ANSWER, createClusterWait } from './cluster-wait.ts';
import { conditionsOf } from './conditions.ts';
import type { Controllers, Desired } from './contract.ts';
import { createGivenUp } from './given-up.ts';
import { heldGoal } from './hold.ts';
import { unobservedStatus, withStartDone } from './observe.ts';
import { failureOf, isFutile } from './perform.ts';
import { performInTime, type StepOutcome } from './perform-in-time.ts';
import { createPhaseLog } from './phases.ts';
import { createSight } from './sight.ts';
import type { LoopStatus } from './status.ts';
import { isReady, nextStep, type Step, stepName } from './step.ts';

/** Interval between drift checks of a converged loop, and between checks of a starting cluster. */
export const IDLE_MS = 5_000;
const POLL_MS = 1_000;

export interface ControllersInput {
  driver: Driver;
  desired: Desired;
  clock: Clock;
  /** In [0, 1); adds jitter to retries. */
  random: () => number;
  log: DriverContext['log'];
  /** Throws when the backend must not be touched now. */
  check?(): void;
}

/**
 * Starts the loop: observe, decide one step, perform it, observe again. When converged it observes every `IDLE_MS` and
 * repairs drift; it observes at once when the driver reports an exit (`Driver.watch`), unless that part came up so
 * recently that it would be a hot loop. A failed step is retried with backoff; a terminal error, or the last attempt,
 * ends in state `ERROR` until `desire` is called or something else breaks (`given-up.ts`). `desire` ends every pause at
 * once and cancels a start that has become futile; `close` cancels any start.
 *
 * Every step has a limit (`step-limits.ts`). If one does not even end when cancelled, the loop keeps observing, in
 * state `ERROR`, and performs nothing until it has ended: parts nest, so a concurrent second step could undo it or be
 * undone.
 */
export function createControllers({
  driver,
  desired: initial,
  clock,
  random,
  log,
  check = () => undefined,
}: ControllersInput): Controllers {
  const closing = new AbortController();
  const listeners = new Set<(status: LoopStatus) => void>();
  const phases = createPhaseLog(clock);
  const attempts = createAttempts();
  const clusterWait = createClusterWait(clock);
  const givenUp = createGivenUp();
  const counters = { steps: 0, restarts: 0, resets: 0, failures: 0 };
  let desired = initial;
  let goal = heldGoal(desired, driver);
  let failure: Failure | undefined;
  let underway: { step: Step; abort: AbortController } | undefined;
  /** A cancelled step that is still running. */
  let stuck: { step: Step; error: RdError } | undefined;
  /** The settings last worked on; anything that ran before the service started is assumed to have the initial ones. */
  let workedOn = initial.settings;
  /** The current desired state has been observed since it was set. */
  let fresh = false;
  /** The last completed version of the desired state. */
  let observedGeneration = 0;
  /** The backend was ready, and the current work interrupts it. */
  let serving = false;
  /** Skip the next pause. */
  let nudged = false;
  let resting: AbortController | undefined;
  /** Since when every observation has found nothing to do. */
  let calmSince: number | undefined;
  const sight = createSight({ driver, clock, check, closing: closing.signal, wake: () => resting?.abort() });
  let published = snapshot([]);
  const unwatch = driver.watch(() => {
    sight.doubt();
    if (calmSince !== undefined && clock.now() - calmSince >= IDLE_MS) nudged = true;
    publish();
  });
  const ended = run();

  return {
    desire(next) {
      goal = heldGoal(next, driver, goal);
      desired = next;
      failure = undefined;
      attempts.forget();
      clusterWait.forget();
      fresh = false;
      nudged = true;
      phases.restart();
      if (underway && isFutile(underway.step, goal, driver)) underway.abort.abort();
      sight.interrupt();
      resting?.abort();
      publish();
    },
    status: () => published,
    observed: () => withStartDone(known(), (underway ?? stuck)?.step),
    look: (signal, patience) =>
      sight.ask(signal, () => patience === 'until it succeeds' && published.backendState !== 'ERROR'),
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
      unwatch();
      sight.end();
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

  /** One observation and at most one step. Returns the milliseconds until the next pass. */
  async function pass(): Promise<number> {
    let now: Observed;
    try {
      now = await sight.look();
    } catch (error) {
      if (closing.signal.aborted || nudged) return 0;
      return retry('observation', failureOf('observation', driver, error));
    }
    if (failure?.what === 'observation') failure = undefined;
    if (nudged) return 0;
    fresh = true;
    if (desired.hold?.keep !== 'as it is') workedOn = desired.settings;
    const step = nextStep(goal, now, driver);
    if (step) calmSince = undefined;
    const isOther = failure?.terminal === true && givenUp.isOther(step, now);
    if (!step) return rested(isReady(goal, now));
    clusterWait.forget();
    if (failure?.terminal && (stuck || !isOther)) return IDLE_MS;
    if (stuck) return retry(stepName(stuck.step), stuck.error, { step: stuck.step });
    const fruitless = attempts.fruitless(stepName(step));
    if (fruitless) return retry(stepName(step), fruitless, { step });
    try {
      check();
    } catch (error) {
      return retry('observation', failureOf('observation', driver, error));
    }
    return act(step, now);
  }

  /** The last observation, or the assumed state. */
  function known(): Observed {
    const seen = sight.seen();
    const trouble = sight.trouble();
    return seen && trouble === undefined ? seen : assumed({ seen, settings: workedOn, driver, reason: trouble ?? '' });
  }

  function rested(ready: boolean): number {
    if (!ready) return awaitCluster();
    failure = undefined;
    attempts.forget();
    clusterWait.forget();
    observedGeneration = desired.generation;
    calmSince ??= clock.now();
    serving = goal.on;
    return IDLE_MS;
  }

  function awaitCluster(): number {
    const overdue = clusterWait.look();
    if (overdue && failure?.what === CLUSTER_ANSWER) return IDLE_MS;
    failure = undefined;
    return overdue ? retry(CLUSTER_ANSWER, overdue) : POLL_MS;
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
    // A change of the desired state, or closing, waits for one limit at most.
    const isPatient = () => !nudged && !closing.signal.aborted;
    const ending = await performInTime({ step, seen: before, driver, clock, abort, isPatient });
    underway = undefined;
    if ('error' in ending) end('failed', ending.error.message);
    else end(ending.how);
    return concluded(step, ending);
  }

  function concluded(step: Step, ending: StepOutcome): number {
    const name = stepName(step);
    switch (ending.how) {
      case 'dropped':
        return 0;
      case 'failed':
        return nudged ? 0 : retry(name, ending.error, { step, spent: ending.spent });
      case 'stuck':
        stuck = { step, error: ending.error };
        ending.over.then(() => unstick(name));
        return retry(name, ending.error, { step });
      case 'done':
        counters.steps++;
        if (step.part === 'cluster' && step.step.do === 'reset') counters.resets++;
        log('info', 'step done', { step: name, generation: desired.generation });
        attempts.succeeded(name);
        failure = undefined;
        return 0;
    }
  }

  function unstick(name: string): void {
    log('info', 'step ended late', { step: name });
    if (failure?.error === stuck?.error) failure = undefined;
    stuck = undefined;
    nudged = true;
    resting?.abort();
  }

  function retry(what: string, error: RdError, { step, spent }: { step?: Step; spent?: Spent } = {}): number {
    counters.failures++;
    failure = attempts.failed(what, error, spent);
    const { terminal } = failure;
    if (terminal) givenUp.begin(step, sight.seen());
    const values = { step: what, attempts: failure.attempts, terminal, code: error.code, error: error.message };
    log('warn', what === CLUSTER_ANSWER ? 'cluster does not answer' : 'step failed', values);
    if (!terminal) return backoffMs(failure.attempts, random);
    observedGeneration = desired.generation;
    return IDLE_MS;
  }

  /** Sleeps until there is something to do. A request to observe does not end a backoff early. */
  async function rest(ms: number): Promise<void> {
    const end = clock.now() + ms;
    while (!nudged && !closing.signal.aborted && clock.now() < end) {
      if (sight.waiting()) {
        await sight.look().catch(() => undefined);
        publish();
        continue;
      }
      resting = new AbortController();
      await clock.sleep(end - clock.now(), resting.signal);
      resting = undefined;
    }
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
    const { generation, hold } = desired;
    const held = hold !== undefined && hold.keep !== 'as it is';
    const seen = sight.seen();
    const settled = fresh && underway === undefined && !sight.doubted();
    const conditions = conditionsOf(
      { goal, seen, driver, failure, fresh: settled, generation, now, ...(hold ? { hold } : {}) },
      before,
    );
    const failed = failure?.terminal === true;
    return {
      power: desired.power,
      generation,
      observedGeneration,
      converged: conditions.some(({ type, status }) => type === 'Converged' && status === 'True'),
      backendState: backendState({ goal, seen, driver, underway: underway?.step, failed, held }),
      conditions,
      ...(seen ?? unobservedStatus(driver)),
      phases: phases.list(),
      counters: { ...counters },
    };
  }
}
