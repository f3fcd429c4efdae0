import type { DriverInfo } from '../drivers/driver.ts';
import { type DesiredBackend, type Goal, goalOf, type Observed } from '../plan/backend.ts';
import type { Failure } from './attempts.ts';
import type { Condition, StatusDocument } from './status.gen.ts';

/** The state that the controllers converge to. `generation` increases by one with every accepted change. */
export interface Desired extends DesiredBackend {
  generation: number;
  /** Only set by the service's maintenance; the desired power is kept beside it. */
  hold?: Hold;
}

/** The running controllers, as seen by the rest of the service. */
export interface Controllers {
  /** Replaces the desired state and wakes the loop without waiting. `status()` is not ready from here on if work is due. */
  desire(next: Desired): void;
  /** Ends a pause, because the condition that the loop waits for may be met. */
  wake(): void;
  /** Gives the desired state another generation; work, pauses and failures continue unchanged. */
  renumber(generation: number): void;
  /** Returns the last observation, with the conditions and their generation. */
  status(): LoopStatus;
  /** Returns the state that plans are based on: the last observation, with a running start counted as done. */
  observed(): Observed;
  /**
   * Observes everything now, and resolves when done: `observed()` is then newer than the call. The observation leads to
   * no step, and waits for a running one. Resolves with false if it failed, the signal aborted or the loop has ended;
   * the known state is then older. With `patience` a failed observation is retried, unless the loop has given up.
   */
  look(signal: AbortSignal, patience?: 'until it succeeds'): Promise<boolean>;
  /**
   * Resolves after the first observation, successful or not, or when the signal aborts. Until then a plan would miss
   * parts that survived the last service, and promise too much.
   */
  firstLook(signal: AbortSignal): Promise<unknown>;
  /** Returns the reason that an observation would have to wait now, as a clause: a step, or a slow driver. Undefined if it would not. */
  waitingFor(): string | undefined;
  /**
   * Resolves when the loop has converged or reached a terminal error for the current generation, or the signal aborts; for a service that
   * ends, when the backend is off.
   */
  quiesce(signal: AbortSignal): Promise<LoopStatus>;
  /** Returns the failure that the loop has given up on, while the state is `ERROR`, or that of a part that keeps ending. */
  failure(): Pick<Failure, 'what' | 'error'> | undefined;
  /** Calls back after every pass that changed the status. Returns the unsubscribe function. */
  onChange(listener: (status: LoopStatus) => void): () => void;
  /** Ends the loop and waits for the running step. Leaves the backend as it is. */
  close(): Promise<void>;
}

export type { BackendState, Concern, Condition, Phase, Power } from './status.gen.ts';

/** The conditions of the loop; the service adds the others. */
export type ConditionType = Exclude<Condition['type'], 'Contested' | 'UserFilesReady'>;

/** The loop's report; the API adds the service's identity and serves it as `GET /v2/status`. */
export interface LoopStatus
  extends Pick<
    StatusDocument,
    | 'power'
    | 'generation'
    | 'observedGeneration'
    | 'converged'
    | 'backendState'
    | 'conditions'
    | 'machine'
    | 'engines'
    | 'cluster'
    | 'phases'
  > {
  /** Counted since the service started. */
  counters: Omit<StatusDocument['counters'], 'settingsPuts' | 'settingsWrites'>;
}

/**
 * Keeps the backend from its desired state without changing that state. `off`: nothing may run, because its data is
 * being worked on. `cluster reset`: everything below the cluster runs, and the cluster's data is deleted. `as it is`:
 * the previous goal stays, and changes of the desired state wait.
 */
export interface Hold {
  keep: 'off' | 'cluster reset' | 'as it is';
  /** A sentence for display: the reason, and the event that ends the hold. */
  reason: string;
  /** No operation will end the hold: it needs user action, and a restart of the service. */
  damaged?: true;
  /** The service is ending, and the backend with it. */
  stopping?: true;
}

/** Returns the goal: the desired state, or the part of it that the hold permits. `before`: the goal until now. */
export function heldGoal({ hold, ...desired }: Desired, driver: DriverInfo, before?: Goal): Goal {
  if (!hold) return goalOf(desired, driver);
  if (hold.keep === 'as it is') return before ?? goalOf(desired, driver);
  if (hold.keep === 'off') return goalOf({ ...desired, power: 'stopped' }, driver);
  const { cluster: _, ...below } = goalOf({ ...desired, power: 'started' }, driver);
  return driver.hasCluster ? { ...below, resetCluster: true } : below;
}
