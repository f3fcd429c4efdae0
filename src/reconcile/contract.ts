import type { Observed } from '../plan/observed.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Hold } from './hold.ts';
import type { LoopStatus, Power } from './status.ts';

/** What the controllers converge to. `generation` increases by one with every accepted change. */
export interface Desired {
  settings: Settings;
  power: Power;
  generation: number;
  /** Only set by the service's maintenance; the desired power is kept beside it. */
  hold?: Hold;
}

/** The running controllers, as seen by the rest of the service. */
export interface Controllers {
  /** Replaces the desired state and wakes the loop without waiting. `status()` is not ready from here on if work is due. */
  desire(next: Desired): void;
  /** The last observation, with the conditions and their generation. */
  status(): LoopStatus;
  /** The state that plans are based on: the last observation, with a running start counted as done. */
  observed(): Observed;
  /**
   * Observes everything now, and resolves when done: `observed()` is then newer than the call. The observation leads to
   * no step, and waits for a running one. False when it failed, the signal aborted or the loop has ended; what is known
   * is then older. With `patience` a failed observation is retried, unless the loop has given up.
   */
  look(signal: AbortSignal, patience?: 'until it succeeds'): Promise<boolean>;
  /** Resolves when the loop has converged or reached a terminal error for the current generation, or the signal aborts. */
  quiesce(signal: AbortSignal): Promise<LoopStatus>;
  /** Calls back after every pass that changed the status. Returns the unsubscribe function. */
  onChange(listener: (status: LoopStatus) => void): () => void;
  /** Ends the loop and waits for the running step. Leaves the backend as it is. */
  close(): Promise<void>;
}
