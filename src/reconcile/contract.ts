import type { Observed } from '../plan/observed.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Hold } from './hold.ts';
import type { LoopStatus, Power } from './status.ts';

/** What the controllers work toward. `generation` grows by one with every accepted change. */
export interface Desired {
  settings: Settings;
  power: Power;
  generation: number;
  /** Set by the maintenance of the service alone; the wish for power is kept beside it. */
  hold?: Hold;
}

/** The running controllers as the rest of the service sees them. */
export interface Controllers {
  /** Replaces the desired state and wakes the loop; never waits. Readiness in `status()` is false from here on if work is due. */
  desire(next: Desired): void;
  /** The last observation, with conditions for the generation they speak for. */
  status(): LoopStatus;
  /** What a plan has to reckon with: the last observation, with a start that is under way counted as done. */
  observed(): Observed;
  /**
   * Has everything looked at now, and resolves when that is done: `observed()` is then of a moment after the call. Nothing is
   * decided by that look, and while a step is under way it waits for the step. False when there was no such look, because it
   * failed, the signal aborted or the loop has ended; what is known is then older. With `patience` a look that failed is made again,
   * unless nothing is tried any more.
   */
  look(signal: AbortSignal, patience?: 'until it succeeds'): Promise<boolean>;
  /** Resolves when the loop has converged or reached a terminal error for the present generation, or the signal aborts. */
  quiesce(signal: AbortSignal): Promise<LoopStatus>;
  /** Calls back after every pass that changed the status. Returns the function that ends it. */
  onChange(listener: (status: LoopStatus) => void): () => void;
  /** Ends the loop and waits for the step under way. Leaves the backend as it is. */
  close(): Promise<void>;
}
