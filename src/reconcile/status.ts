import type { ClusterStatus, EngineName, EngineStatus, MachineStatus } from '../drivers/driver.ts';

/** Desired power of the backend. */
export type Power = 'started' | 'stopped';

/** The six values of `GET /v1/backend_state`. */
export type BackendState = 'STOPPED' | 'STARTING' | 'STARTED' | 'STOPPING' | 'ERROR' | 'DISABLED';

/**
 * What a condition requires of the user: nothing, because it is as intended (including an intended `False`); patience
 * while work is in progress; or attention, because something is wrong.
 */
export type Concern = 'none' | 'patience' | 'attention';

export type ConditionType = 'MachineReady' | 'EngineReady' | 'ClusterReady' | 'Converged';

/** A named fact. `observedGeneration` is the version of the desired state that it covers. */
export interface Condition {
  type: ConditionType;
  status: 'True' | 'False' | 'Unknown';
  /** CamelCase, for programs. */
  reason: string;
  concern: Concern;
  /** A sentence for display: the state, and on failure what to do next. */
  message: string;
  observedGeneration: number;
  /** RFC 3339. */
  lastTransitionTime: string;
}

/** One step on the way to convergence; `ms` is absent while it runs. */
export interface Phase {
  /** `machine start`, `engine stop`, … */
  name: string;
  startedAt: string;
  ms?: number;
  outcome?: 'done' | 'failed';
  /** Why it failed. */
  reason?: string;
}

/** No observation has succeeded since the service started. */
interface NotSeen {
  state: 'unknown';
}

/** The loop's report; the API adds the service's identity and serves it as `GET /v2/status`. */
export interface LoopStatus {
  power: Power;
  /** Version of the desired state, and the last version that the controllers have completed. */
  generation: number;
  observedGeneration: number;
  converged: boolean;
  backendState: BackendState;
  conditions: Condition[];
  /** As last observed: while a part's condition is `Unknown`, this may be stale. */
  machine: MachineStatus | NotSeen;
  engines: Record<EngineName, EngineStatus | NotSeen>;
  cluster: ClusterStatus | { state: 'unsupported' } | NotSeen;
  /** Since the last change of the desired state. */
  phases: Phase[];
  /** Since the service started. */
  counters: { steps: number; restarts: number; resets: number; failures: number };
}
