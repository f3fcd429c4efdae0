import type { Driver, DriverInfo, EngineName, EngineStep } from '../drivers/driver.ts';
import { engineMustStop, machineMustStop } from '../plan/consequences.ts';
import { engineDrift } from '../plan/drift.ts';
import { busyEngines, clusterHasProcess, ENGINE_NAMES, type Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';

/** A step and its engine. */
export interface EngineDecision {
  engine: EngineName;
  step: EngineStep;
}

/**
 * Pure. An engine stops only when no cluster runs on it, and starts only in a machine that stays, when no engine has a
 * process: there are never two.
 */
export function nextEngineStep(goal: Goal, seen: Observed, driver: DriverInfo): EngineDecision | undefined {
  const leaving = ENGINE_NAMES.find((name) => engineMustStop(name, goal, seen, driver));
  if (leaving) return clusterHasProcess(seen) ? undefined : { engine: leaving, step: { do: 'stop' } };
  if (!goal.on || seen.machine.state !== 'on' || machineMustStop(goal, seen, driver)) return undefined;
  const { name } = goal.engine;
  const engine = seen.engines[name];
  if (busyEngines(seen).length === 0) return { engine: name, step: { do: 'start', spec: goal.engine } };
  if (engine.state !== 'running') return undefined;
  const { live } = engineDrift(engine.spec, goal.engine, driver);
  return live.length > 0 ? { engine: name, step: { do: 'adjust', spec: goal.engine } } : undefined;
}

export async function performEngine(decision: EngineDecision, driver: Driver, signal: AbortSignal): Promise<void> {
  await driver.engines[decision.engine].perform(decision.step, signal);
}
