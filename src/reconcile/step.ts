import type { ClusterStep, DriverInfo, EngineName, EngineStep, MachineStep } from '../drivers/driver.ts';
import type { Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';
import { nextClusterStep } from './cluster.ts';
import { nextEngineStep } from './engine.ts';
import { nextMachineStep } from './machine.ts';

/** The next step, and the part that performs it. */
export type Step =
  | { part: 'machine'; step: MachineStep }
  | { part: 'engine'; engine: EngineName; step: EngineStep }
  | { part: 'cluster'; step: ClusterStep };

/** `engine start`: the name of a step in phases, messages and logs. */
export type StepName = `machine ${MachineStep['do']}` | `engine ${EngineStep['do']}` | `cluster ${ClusterStep['do']}`;

/**
 * Pure: the one thing to do now, or nothing. Each part waits for the others by itself: going up the machine comes first and the
 * cluster last, going down the other way round, so at most one engine ever runs and a cluster never without its engine.
 *
 * ```
 * up:    machine start ▸ engine start ▸ cluster (reset ▸) start
 * down:  cluster stop  ▸ engine stop  ▸ machine stop
 * switch of engine: cluster stop ▸ old engine stop ▸ new engine start ▸ cluster start
 * ```
 */
export function nextStep(goal: Goal, seen: Observed, driver: DriverInfo): Step | undefined {
  const machine = nextMachineStep(goal, seen, driver);
  if (machine) return { part: 'machine', step: machine };
  const engine = nextEngineStep(goal, seen, driver);
  if (engine) return { part: 'engine', ...engine };
  const cluster = nextClusterStep(goal, seen, driver);
  return cluster && { part: 'cluster', step: cluster };
}

/** True when everything that should run does, and a cluster answers; other work may remain. */
export function isReady(goal: Goal, seen: Observed): boolean {
  if (!goal.on) return true;
  if (seen.machine.state !== 'on' || seen.engines[goal.engine.name].state !== 'running') return false;
  return !goal.cluster || (seen.cluster.state === 'running' && seen.cluster.ready);
}

export function stepName(step: Step): StepName {
  switch (step.part) {
    case 'machine':
      return `machine ${step.step.do}`;
    case 'engine':
      return `engine ${step.step.do}`;
    case 'cluster':
      return `cluster ${step.step.do}`;
  }
}
