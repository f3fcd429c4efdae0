import type { DriverInfo } from '../drivers/driver.ts';
import { isUp, type Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';
import type { BackendState } from './status.ts';
import { isReady, nextStep, type Step } from './step.ts';

/** The inputs to the backend state. */
export interface StateInput {
  goal: Goal;
  /** Undefined until the first successful observation. */
  seen: Observed | undefined;
  driver: DriverInfo;
  /** The step being performed. */
  underway: Step | undefined;
  /** The loop has given up. */
  failed: boolean;
  /** The goal is held away from the desired power (`hold.ts`): a backend that is up for another purpose is not ready. */
  held?: boolean;
}

/**
 * The value of `GET /v1/backend_state`. A function of goal and observation, so it leaves the ready states as soon as a
 * restart is due, before the first step; stored-only and live changes never leave them. A restart shows `STOPPING`,
 * then `STARTING`.
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
