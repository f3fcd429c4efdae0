import { isDeepStrictEqual } from 'node:util';
import type { DriverInfo } from '../drivers/driver.ts';
import type { Clock } from '../os/clock.ts';
import { type Goal, isUp } from '../plan/backend.ts';
import { type ConditionInput, conditionsOf } from './conditions.ts';
import type { BackendState, Desired, LoopStatus, Phase } from './contract.ts';
import { isReady, nextStep, type Step } from './step.ts';

/** The facts that a report of the loop is made of. */
export interface LoopFacts extends Pick<ConditionInput, 'consequences' | 'failure'> {
  desired: Desired;
  goal: Goal;
  driver: DriverInfo;
  /** The step being performed. */
  underway: Step | undefined;
  /** The last observation is newer than the desired state, and nothing has exited since. */
  fresh: boolean;
  observedGeneration: number;
  /** Milliseconds since 1970. */
  now: number;
  phases: Phase[];
  counters: LoopStatus['counters'];
}

/** Returns the report of the loop. `previous`: the conditions of the last report. Pure. */
export function loopStatus(facts: LoopFacts, previous: LoopStatus['conditions']): LoopStatus {
  const { desired, driver, consequences, failure, underway } = facts;
  const conditions = conditionsOf(
    {
      consequences,
      hasCluster: driver.hasCluster,
      failure,
      fresh: facts.fresh && underway === undefined,
      generation: desired.generation,
      now: new Date(facts.now).toISOString(),
      ...(desired.hold ? { hold: desired.hold } : {}),
    },
    previous,
  );
  return {
    power: desired.power,
    generation: desired.generation,
    observedGeneration: facts.observedGeneration,
    converged: conditions.some(({ type, status }) => type === 'Converged' && status === 'True'),
    backendState: failure?.terminal ? 'ERROR' : backendState(facts),
    conditions,
    ...(consequences?.observed ?? unobservedStatus(driver)),
    phases: facts.phases,
    counters: { ...facts.counters },
  };
}

/**
 * Returns the value of `GET /v1/backend_state`, a function of goal and observation. It leaves the ready states as soon
 * as a restart is due, before the first step; stored-only and live changes never leave them. A restart shows
 * `STOPPING`, then `STARTING`. A backend that is up for another purpose than the desired one is not ready.
 */
function backendState({ goal, consequences, underway, desired: { hold } }: LoopFacts): BackendState {
  if (!consequences) return goal.on ? 'STARTING' : 'STOPPING';
  const { observed } = consequences;
  const step = underway && underway.step.do !== 'adjust' ? underway : nextStep(consequences);
  if (!goal.on) return step || isUp(observed) ? 'STOPPING' : 'STOPPED';
  if (step && step.step.do !== 'adjust') return step.step.do === 'stop' ? 'STOPPING' : 'STARTING';
  const isHeld = hold !== undefined && hold.keep !== 'as it is';
  if (isHeld || !isReady(goal, observed)) return 'STARTING';
  return goal.cluster ? 'STARTED' : 'DISABLED';
}

/** Returns the status before the first successful observation; the conditions then say `NotObserved` or `ObservationFailed`. */
function unobservedStatus(driver: DriverInfo): Pick<LoopStatus, 'machine' | 'engines' | 'cluster'> {
  const unknown = { state: 'unknown' } as const;
  return {
    machine: unknown,
    engines: { moby: unknown, containerd: unknown },
    cluster: driver.hasCluster ? unknown : { state: 'unsupported' },
  };
}

/** The last report of the loop, and the callers waiting for another. */
export interface Reports {
  last(): LoopStatus;
  /** Stores a report and calls the listeners if it differs from the last one. */
  publish(next: LoopStatus): void;
  /** Calls back with each report that differs from the last one. Returns the unsubscribe function. */
  onChange(listener: (status: LoopStatus) => void): () => void;
  /** Resolves with the last report when it passes, or when a signal aborts. */
  until(passes: (status: LoopStatus) => boolean, signals: readonly AbortSignal[]): Promise<LoopStatus>;
}

export function createReports(first: LoopStatus): Reports {
  const listeners = new Set<(status: LoopStatus) => void>();
  let last = first;
  const onChange: Reports['onChange'] = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    last: () => last,
    publish(next) {
      if (isDeepStrictEqual(next, last)) return;
      last = next;
      for (const listener of [...listeners]) listener(last);
    },
    onChange,
    until: (passes, signals) =>
      new Promise((resolve) => {
        if (passes(last) || signals.some(({ aborted }) => aborted)) return resolve(last);
        const finish = () => {
          stop();
          for (const signal of signals) signal.removeEventListener('abort', finish);
          resolve(last);
        };
        const stop = onChange((status) => {
          if (passes(status)) finish();
        });
        for (const signal of signals) signal.addEventListener('abort', finish, { once: true });
      }),
  };
}

/** Maximum number of phases; a long repair drops its oldest ones. */
const MAX_PHASES = 100;

/** Records the phases since the last change of the desired state, with their durations. */
export interface PhaseLog {
  list(): Phase[];
  /** Drops finished phases and keeps running ones. */
  restart(): void;
  /** Records a start. */
  begin(name: string): RunningPhase;
  /** Records that a part ended on its own after `ms`. */
  cutOff(name: string, ms: number, reason: string): void;
}

interface RunningPhase {
  /** Notes that the phase is waiting. `what`: a clause. No effect once the phase has ended. */
  waitsFor(what: string): void;
  /** Ends the phase. `dropped`: it was cancelled and is removed. `reason`: the cause of the failure. */
  end(outcome: 'done' | 'failed' | 'dropped', reason?: string): void;
}

export function createPhaseLog(clock: Clock): PhaseLog {
  let phases: Phase[] = [];
  return {
    list: () => phases.map((phase) => ({ ...phase })),
    restart() {
      phases = phases.filter((phase) => phase.outcome === undefined);
    },
    begin(name) {
      const started = clock.now();
      const phase: Phase = { name, startedAt: new Date(started).toISOString() };
      phases = [...phases, phase].slice(-MAX_PHASES);
      return {
        waitsFor(what) {
          if (phase.outcome === undefined) phase.waitingFor = what;
        },
        end(outcome, reason) {
          if (outcome === 'dropped') {
            phases = phases.filter((other) => other !== phase);
            return;
          }
          delete phase.waitingFor;
          phase.ms = clock.now() - started;
          phase.outcome = outcome;
          if (reason !== undefined) phase.reason = reason;
        },
      };
    },
    cutOff(name, ms, reason) {
      const startedAt = new Date(clock.now() - ms).toISOString();
      phases = [...phases, { name, startedAt, ms, outcome: 'failed' as const, reason }].slice(-MAX_PHASES);
    },
  };
}
