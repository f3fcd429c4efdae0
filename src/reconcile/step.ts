import type { ClusterStep, DriverInfo, EngineName, EngineStatus, EngineStep, MachineStep } from '../drivers/driver.ts';
import { busyEngines, clusterHasProcess, ENGINE_NAMES, type Goal, isUp, type Observed } from '../plan/backend.ts';
import type { Consequences } from '../plan/consequences.ts';
import { clusterDrift, engineDrift, machineDrift } from '../plan/drift.ts';

/** The next step, and the part that performs it. */
export type Step =
  | { part: 'machine'; step: MachineStep }
  | { part: 'engine'; engine: EngineName; step: EngineStep }
  | { part: 'cluster'; step: ClusterStep };

/** `engine start`: the name of a step in phases, messages and logs. */
export type StepName = `machine ${MachineStep['do']}` | `engine ${EngineStep['do']}` | `cluster ${ClusterStep['do']}`;

/**
 * Returns the one step to take now, or undefined. Pure. Each part waits for the others on its own: going up the machine comes first and the
 * cluster last, going down the other way round, so at most one engine ever runs and a cluster never without its engine.
 *
 * ```
 * up:    machine start ▸ engine start ▸ cluster (reset ▸) start
 * down:  cluster stop  ▸ engine stop  ▸ machine stop
 * switch of engine: cluster stop ▸ old engine stop ▸ new engine start ▸ cluster start
 * ```
 */
export function nextStep(consequences: Consequences): Step | undefined {
  const machine = nextMachineStep(consequences);
  if (machine) return { part: 'machine', step: machine };
  const engine = nextEngineStep(consequences);
  if (engine) return engine;
  const cluster = nextClusterStep(consequences);
  return cluster && { part: 'cluster', step: cluster };
}

/** True when everything that should run does, and a cluster answers; other work may remain. */
export function isReady(goal: Goal, seen: Observed): boolean {
  if (!goal.on) return true;
  if (seen.machine.state !== 'on' || seen.engines[goal.engine.name].state !== 'running') return false;
  return !goal.cluster || (seen.cluster.state === 'running' && seen.cluster.ready);
}

export function stepName(step: Step): StepName {
  return `${step.part} ${step.step.do}` as StepName;
}

/**
 * Returns the machine's next step. The machine stops after, and starts before, everything in it. A broken or halted one is stopped at once, because
 * nothing in it can be asked to stop.
 */
export function nextMachineStep({ goal, observed: seen, machine }: Consequences): MachineStep | undefined {
  if (seen.machine.state === 'broken') return { do: 'stop' };
  if (seen.machine.state === 'on') {
    if (machine.mustStop) return isUp(seen) && !seen.machine.halted ? undefined : { do: 'stop' };
    const adjust = machine.drift?.live.length || seen.machine.repair !== undefined;
    return adjust ? { do: 'adjust', spec: goal.machine } : undefined;
  }
  // Parts that claim to run in a stopped machine are cleared first.
  return goal.on && !isUp(seen) ? { do: 'start', spec: goal.machine } : undefined;
}

/**
 * Returns the engines' next step. An engine stops only when no cluster runs on it, and starts only in a machine that stays, when no engine has a
 * process: there are never two.
 */
function nextEngineStep({ goal, observed: seen, machine, engines }: Consequences): Step | undefined {
  const toStop = ENGINE_NAMES.find((name) => engines[name].mustStop);
  if (toStop) return clusterHasProcess(seen) ? undefined : { part: 'engine', engine: toStop, step: { do: 'stop' } };
  if (!goal.on || seen.machine.state !== 'on' || machine.mustStop) return undefined;
  const { engine: spec } = goal;
  if (busyEngines(seen).length === 0) return { part: 'engine', engine: spec.name, step: { do: 'start', spec } };
  return engines[spec.name].drift?.live.length
    ? { part: 'engine', engine: spec.name, step: { do: 'adjust', spec } }
    : undefined;
}

/**
 * Returns the cluster's next step. A cluster starts on a running engine that stays, and stops before it does. Its data
 * is deleted only right before a start that cannot use it, because its version is lower, or on request.
 */
function nextClusterStep({ goal, observed: seen, engines, cluster }: Consequences): ClusterStep | undefined {
  const { state } = seen.cluster;
  if (cluster.mustStop) return { do: 'stop' };
  if (goal.resetCluster && seen.machine.state === 'on') return state === 'stopped' ? { do: 'reset' } : undefined;
  if (!goal.on || !goal.cluster || (state !== 'absent' && state !== 'stopped')) return undefined;
  const { name } = goal.engine;
  if (seen.engines[name].state !== 'running' || engines[name].mustStop) return undefined;
  return cluster.mustReset ? { do: 'reset' } : { do: 'start', spec: goal.cluster };
}

/** True for a step that deletes the data of the cluster because of its version, and not on request. */
export function deletesUnasked({ part, step }: Step, goal: Goal): boolean {
  return part === 'cluster' && step.do === 'reset' && !goal.resetCluster;
}

/**
 * True for a start that is obsolete, because the power or the settings have changed since it began. Only such a step is
 * cancelled: its result would be stopped next anyway. A stop, a reset or an adjustment runs to its end, since half of
 * one is worse than either side of it.
 */
export function isFutile(step: Step, goal: Goal, driver: DriverInfo): boolean {
  if (step.step.do !== 'start') return false;
  if (!goal.on) return true;
  switch (step.part) {
    case 'machine':
      return machineDrift(step.step, goal.machine, driver).restart.length > 0;
    case 'engine':
      return step.engine !== goal.engine.name || engineDrift(step.step.spec, goal.engine, driver).restart.length > 0;
    case 'cluster':
      return !goal.cluster || clusterDrift(step.step.spec, goal.cluster, driver).restart.length > 0;
  }
}

/**
 * Returns the state that plans are based on: the observation, with a running start counted as done, so that changing
 * settings during a start shows the restart that it will cost.
 */
export function withStartDone(seen: Observed, underway: Step | undefined): Observed {
  if (underway?.step.do !== 'start') return seen;
  switch (underway.part) {
    case 'machine':
      return { ...seen, machine: { state: 'on', spec: underway.step.spec } };
    case 'engine': {
      const starting: EngineStatus = {
        state: 'running',
        spec: underway.step.spec,
        endpoint: '',
        version: '',
        workload: { runningContainers: 0 },
      };
      return { ...seen, engines: { ...seen.engines, [underway.engine]: starting } };
    }
    case 'cluster': {
      const { spec } = underway.step;
      const known = 'installedVersion' in seen.cluster ? seen.cluster.installedVersion : spec.version;
      return { ...seen, cluster: { state: 'running', installedVersion: spec.version || known, spec, ready: false } };
    }
  }
}
