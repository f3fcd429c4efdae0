import type { DriverInfo, EngineName } from '../drivers/driver.ts';
import { clusterDrift, engineDrift, machineDrift } from './drift.ts';
import { mayDowngrade } from './kubernetes-order.ts';
import { installedVersion, type Observed } from './observed.ts';
import type { Goal } from './spec.ts';

/**
 * Whether a goal requires running parts to stop. The plan reports these consequences and the reconcilers perform them,
 * so the two cannot disagree.
 */
export function machineMustStop(goal: Goal, seen: Observed, driver: DriverInfo): boolean {
  if (seen.machine.state === 'broken') return true;
  if (seen.machine.state !== 'on') return false;
  return !goal.on || machineDrift(seen.machine, goal.machine, driver).restart.length > 0;
}

export function engineMustStop(name: EngineName, goal: Goal, seen: Observed, driver: DriverInfo): boolean {
  const engine = seen.engines[name];
  if (engine.state === 'stopped') return false;
  if (engine.state === 'unresponsive' || !goal.on || name !== goal.engine.name || seen.machine.state !== 'on')
    return true;
  return machineMustStop(goal, seen, driver) || engineDrift(engine.spec, goal.engine, driver).restart.length > 0;
}

/** A cluster never runs without the engine that it was started on. */
export function clusterMustStop(goal: Goal, seen: Observed, driver: DriverInfo): boolean {
  if (seen.cluster.state === 'unresponsive') return true;
  if (seen.cluster.state !== 'running') return false;
  if (!goal.on || !goal.cluster) return true;
  const { spec } = seen.cluster;
  if (seen.engines[spec.engine].state !== 'running' || engineMustStop(spec.engine, goal, seen, driver)) return true;
  return clusterMustReset(goal, seen) || clusterDrift(spec, goal.cluster, driver).restart.length > 0;
}

/** The installed cluster is newer than the desired version. */
export function clusterMustReset(goal: Goal, seen: Observed): boolean {
  return goal.on && goal.cluster !== undefined && mayDowngrade(installedVersion(seen), goal.cluster.version);
}
