import type { Driver, DriverContext } from '../drivers/driver.ts';
import type { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import { assumeObserved } from '../plan/assumed.ts';
import { type DesiredBackend, installedVersion, type Observed } from '../plan/backend.ts';
import { type Consequences, consequencesOf } from '../plan/consequences.ts';
import {
  backoffMs,
  CLUSTER_ANSWER,
  createAttempts,
  createClusterWait,
  createGivenUp,
  type Failure,
  type Spent,
} from './attempts.ts';
import { type Controllers, type Desired, heldGoal, type LoopStatus } from './contract.ts';
import { createEnds, type End } from './ends.ts';
import { createObserver } from './observe.ts';
import { failureOf, performInTime, type StepOutcome } from './perform.ts';
import { createPhaseLog, createReports, loopStatus } from './status.ts';
import { deletesUnasked, isFutile, isReady, nextStep, type Step, stepName, withStartDone } from './step.ts';

/** Interval between drift checks of a converged loop, and between checks of a starting cluster. */
export const IDLE_MS = 5_000;
const POLL_MS = 1_000;

export interface ControllersInput {
  driver: Driver;
  desired: Desired;
  clock: Clock;
  /** Returns a number in [0, 1), which adds jitter to retries. */
  random: () => number;
  log: DriverContext['log'];
  /** Throws when the backend must not be touched now. */
  check?(): void;
  /** True if the data of the installed cluster may be deleted now, when only its version demands it. If not, `wake` follows. */
  mayDelete?(installed: string): boolean;
  /** True to give up on a failed step that would be retried. `ms`: how long this attempt took. */
  givesUp?(failure: Failure, ms: number): boolean;
}

/**
 * Starts the loop: observe, decide one step, perform it, observe again. When converged it observes every `IDLE_MS` and
 * repairs drift; it observes at once when the driver reports an exit (`Driver.watch`), unless that part came up so
 * recently that it would be a hot loop. A failed step is retried with backoff; a terminal error, or the last attempt,
 * ends in state `ERROR` until `desire` is called or something else breaks (`createGivenUp`). A part that keeps ending soon after its start
 * is started again after growing pauses (`createEnds`), unless `givesUp`. `desire` ends every pause at
 * once and cancels a start that has become futile; `close` cancels any start.
 *
 * Every step has a limit (`STEP_LIMITS_MS`). If one does not even end when cancelled, the loop keeps observing, in
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
  mayDelete = () => true,
  givesUp = () => false,
}: ControllersInput): Controllers {
  const closing = new AbortController();
  const phases = createPhaseLog(clock);
  const attempts = createAttempts();
  const clusterWait = createClusterWait(clock);
  const givenUp = createGivenUp();
  const ends = createEnds(clock);
  const counters = { steps: 0, restarts: 0, resets: 0, failures: 0 };
  let desired = initial;
  let goal = heldGoal(desired, driver);
  let failure: Failure | undefined;
  let underway: { step: Step; abort: AbortController } | undefined;
  /** A cancelled step that is still running. */
  let stuck: { step: Step; error: RdError } | undefined;
  /** The desired state last worked on; anything that ran before the service started is assumed to be as desired initially. */
  let last: DesiredBackend = { ...initial };
  /** The current desired state has been observed since it was set. */
  let fresh = false;
  /** The last completed version of the desired state. */
  let observedGeneration = 0;
  /** The backend was ready, and the current work interrupts it. */
  let serving = false;
  /** Skip the next pause. */
  let nudged = false;
  let pause: AbortController | undefined;
  let compared: Consequences | undefined;
  /** Since when every observation has found nothing to do, in milliseconds since 1970. */
  let calmSince: number | undefined;
  const observer = createObserver({ driver, clock, check, closing: closing.signal, wake: () => pause?.abort() });
  const reports = createReports(snapshot([]));
  const unwatch = driver.watch(() => {
    observer.markStale();
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
      ends.forget();
      clusterWait.forget();
      fresh = false;
      nudged = true;
      phases.restart();
      if (underway && isFutile(underway.step, goal, driver)) underway.abort.abort();
      observer.interrupt();
      pause?.abort();
      publish();
    },
    wake() {
      nudged = true;
      pause?.abort();
    },
    renumber(generation) {
      if (observedGeneration === desired.generation) observedGeneration = generation;
      desired = { ...desired, generation };
      publish();
    },
    status: reports.last,
    observed: () => withStartDone(known(), (underway ?? stuck)?.step),
    look: (signal, patience) =>
      observer.request(signal, () => patience === 'until it succeeds' && reports.last().backendState !== 'ERROR'),
    firstLook: (signal) => reports.until(hasObserved, [signal]),
    waitingFor() {
      const step = (underway ?? stuck)?.step;
      return step ? `${stepName(step)} is in progress` : observer.waitingFor();
    },
    quiesce: (signal) => reports.until(isSettled, [signal, closing.signal]),
    failure: () => (failure?.terminal || failure?.what.endsWith(' run') ? failure : undefined),
    onChange: reports.onChange,
    async close() {
      closing.abort();
      unwatch();
      observer.end();
      if (underway?.step.step.do === 'start') underway.abort.abort();
      pause?.abort();
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

  /** Makes one observation and performs at most one step. Returns the milliseconds until the next pass. */
  async function pass(): Promise<number> {
    let now: Observed;
    try {
      now = await observer.look();
    } catch (error) {
      if (closing.signal.aborted || nudged) return 0;
      return retry('observation', failureOf('observation', driver, error));
    }
    if (failure?.what === 'observation') failure = undefined;
    if (nudged) return 0;
    fresh = true;
    if (desired.hold?.keep !== 'as it is') last = { ...desired };
    const step = nextStep(compare(now));
    if (step) calmSince = undefined;
    const isUnrelated = failure?.terminal === true && givenUp.isUnrelated(step, now);
    const end = ends.look(now, step);
    if (!step) return idle(now);
    clusterWait.forget();
    if (failure?.terminal && (stuck || !isUnrelated)) return IDLE_MS;
    const pause = end && afterEnd(end, step);
    if (pause) return pause;
    if (stuck) return retry(stepName(stuck.step), stuck.error, { step: stuck.step });
    const hotLoop = attempts.hotLoopError(stepName(step));
    if (hotLoop) return retry(stepName(step), hotLoop, { step });
    try {
      check();
    } catch (error) {
      return retry('observation', failureOf('observation', driver, error));
    }
    if (deletesUnasked(step, goal) && !mayDelete(installedVersion(now) ?? '')) return POLL_MS;
    return act(step, now);
  }

  /** Returns the last observation, or the assumed state. */
  function known(): Observed {
    const seen = observer.seen();
    const reason = observer.unknownReason();
    return seen && reason === undefined ? seen : assumeObserved({ seen, last, driver, reason: reason ?? '' });
  }

  function idle(now: Observed): number {
    if (!isReady(goal, now)) return awaitCluster(now);
    failure = undefined;
    attempts.forget();
    clusterWait.forget();
    observedGeneration = desired.generation;
    calmSince ??= clock.now();
    serving = goal.on;
    return IDLE_MS;
  }

  function awaitCluster({ cluster }: Observed): number {
    const overdue = clusterWait.look(cluster.state === 'running' ? cluster.message : undefined);
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
    const phase = phases.begin(stepName(step));
    publish();
    // A change of the desired state, or closing, waits for one time limit at most.
    const mayExtend = () => !nudged && !closing.signal.aborted;
    const onWait = (what: string) => {
      phase.waitsFor(what);
      publish();
    };
    const ending = await performInTime({ step, seen: before, driver, clock, abort, mayExtend, onWait });
    underway = undefined;
    if (ending.how === 'done') ends.done(step, before);
    if ('error' in ending) phase.end('failed', ending.error.message);
    else phase.end(ending.how);
    return concludeStep(step, ending);
  }

  function concludeStep(step: Step, ending: StepOutcome): number {
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
    log('info', 'step finished late', { step: name });
    if (failure?.error === stuck?.error) failure = undefined;
    stuck = undefined;
    nudged = true;
    pause?.abort();
  }

  function retry(what: string, error: RdError, { step, spent }: { step?: Step; spent?: Spent } = {}): number {
    counters.failures++;
    failure = attempts.failed(what, error, spent);
    if (!failure.terminal && step && givesUp(failure, spent?.ms ?? 0)) failure = { ...failure, terminal: true };
    const { terminal } = failure;
    if (terminal) givenUp.begin(step, observer.seen());
    const values = { step: what, attempts: failure.attempts, terminal, code: error.code, error: error.message };
    log('warn', what === CLUSTER_ANSWER ? 'cluster does not respond' : 'step failed', values);
    if (!terminal) return backoffMs(failure.attempts, random);
    observedGeneration = desired.generation;
    return IDLE_MS;
  }

  /** Returns the milliseconds to wait before a part that has ended is started again. */
  function afterEnd({ part, ms, times, pauseMs, error }: End, step: Step): number {
    const generation = desired.generation;
    log('warn', 'a part ended that was not stopped', { part, ranMs: ms, times, pauseMs, generation });
    phases.cutOff(`${part} run`, ms, error.message);
    if (pauseMs === 0) return 0;
    counters.failures++;
    failure = { what: `${part} run`, error, attempts: times, terminal: false };
    if (!givesUp(failure, 0)) return pauseMs;
    failure = { ...failure, terminal: true };
    givenUp.begin(step, observer.seen());
    observedGeneration = generation;
    return IDLE_MS;
  }

  /** Sleeps until there is something to do. A request to observe does not end a backoff early. */
  async function rest(ms: number): Promise<void> {
    const end = clock.now() + ms;
    while (!nudged && !closing.signal.aborted && clock.now() < end) {
      if (observer.waiting()) {
        await observer.look().catch(() => undefined);
        publish();
        continue;
      }
      pause = new AbortController();
      await clock.sleep(end - clock.now(), pause.signal);
      pause = undefined;
    }
  }

  function isSettled({ observedGeneration: completed, converged, backendState }: LoopStatus): boolean {
    const hasStopped = desired.hold?.stopping === true && backendState === 'STOPPED';
    return completed === desired.generation && (converged || hasStopped || backendState === 'ERROR');
  }

  function publish(): void {
    reports.publish(snapshot(reports.last().conditions));
  }

  function snapshot(previous: LoopStatus['conditions']): LoopStatus {
    const seen = observer.seen();
    const facts = { desired, goal, driver, failure, observedGeneration, counters };
    return loopStatus(
      {
        ...facts,
        consequences: seen && compare(seen),
        underway: underway?.step,
        fresh: fresh && !observer.isStale(),
        now: clock.now(),
        phases: phases.list(),
      },
      previous,
    );
  }

  /** Returns the consequences, computed once for each goal and observation. */
  function compare(seen: Observed): Consequences {
    if (compared?.goal !== goal || compared.observed !== seen) compared = consequencesOf(goal, seen, driver);
    return compared;
  }
}

function hasObserved({ conditions }: LoopStatus): boolean {
  return conditions.every(({ reason }) => reason !== 'NotObserved');
}
