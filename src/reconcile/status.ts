import type { ClusterStatus, EngineName, EngineStatus, MachineStatus } from '../drivers/driver.ts';

/** Desired power of the backend. */
export type Power = 'started' | 'stopped';

/** The six values of `GET /v1/backend_state` (api facts, 12.2). */
export type BackendState = 'STOPPED' | 'STARTING' | 'STARTED' | 'STOPPING' | 'ERROR' | 'DISABLED';

/**
 * What a condition asks of a person: nothing, because it is as wanted (also a `False` that is meant to be so); patience, because
 * something is under way; or attention, because something is wrong.
 */
export type Concern = 'none' | 'patience' | 'attention';

export type ConditionType = 'MachineReady' | 'EngineReady' | 'ClusterReady' | 'Converged';

/** A named fact. `observedGeneration` is the version of the desired state that the fact speaks for. */
export interface Condition {
  type: ConditionType;
  status: 'True' | 'False' | 'Unknown';
  /** CamelCase word for programs. */
  reason: string;
  concern: Concern;
  /** A sentence for people: what is, and on failure what to do next. */
  message: string;
  observedGeneration: number;
  /** RFC 3339. */
  lastTransitionTime: string;
}

/** One thing done on the way to convergence; `ms` is absent while it runs. */
export interface Phase {
  /** `machine start`, `engine stop`, … */
  name: string;
  startedAt: string;
  ms?: number;
  outcome?: 'done' | 'failed';
  /** Why it failed. */
  reason?: string;
}

/** No look has succeeded since the service started. */
interface NotSeen {
  state: 'unknown';
}

/** What the loop reports; the API adds who is speaking and serves it as `GET /v2/status`. */
export interface LoopStatus {
  power: Power;
  /** Version of the desired state, and the version that the controllers have last acted on to the end. */
  generation: number;
  observedGeneration: number;
  converged: boolean;
  backendState: BackendState;
  conditions: Condition[];
  /** As last seen: while the condition of a part is `Unknown`, nobody knows whether that still holds. */
  machine: MachineStatus | NotSeen;
  engines: Record<EngineName, EngineStatus | NotSeen>;
  cluster: ClusterStatus | { state: 'unsupported' } | NotSeen;
  /** Since the last change of the desired state. */
  phases: Phase[];
  /** Since the service started. */
  counters: { steps: number; restarts: number; resets: number; failures: number };
}
