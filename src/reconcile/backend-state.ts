import type { DriverInfo } from '../drivers/driver.ts';
import { isUp, type Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';
import type { BackendState } from './status.ts';
import { isReady, nextStep, type Step } from './step.ts';

/** What the state of the backend is derived from. */
export interface StateInput {
  goal: Goal;
  /** Undefined until the drivers have answered once. */
  seen: Observed | undefined;
  driver: DriverInfo;
  /** The step being performed. */
  underway: Step | undefined;
  /** Nothing is tried any more. */
  failed: boolean;
  /** What is aimed at is not the wish (`hold.ts`): a backend that is up for another purpose is not ready. */
  held?: boolean;
}

/**
 * The value of `GET /v1/backend_state` (api facts, 12.2). A function of what is wanted and what was seen, so it leaves the ready
 * states in the moment in which a restart becomes due, before the first step; a change that is only stored, or applied to
 * what runs, never leaves them. During a restart it says `STOPPING`, then `STARTING`.
 */
export function backendState({ goal, seen, driver, underway, failed, held = false }: StateInput): BackendState {
  if (failed) return 'ERROR';
  if (!seen) return goal.on ? 'STARTING' : 'STOPPING';
  const step = underway && underway.step.do !== 'adjust' ? underway : nextStep(goal, seen, driver);
  if (!goal.on) return step || isUp(seen) ? 'STOPPING' : 'STOPPED';
  if (step && step.step.do !== 'adjust') return step.step.do === 'stop' ? 'STOPPING' : 'STARTING';
  if (held || !isReady(goal, seen)) return 'STARTING';
  return goal.cluster ? 'STARTED' : 'DISABLED';
}
