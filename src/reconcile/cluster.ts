import type { ClusterSpec, ClusterStep, Driver, DriverInfo } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import { clusterMustReset, clusterMustStop, engineMustStop } from '../plan/consequences.ts';
import { installedVersion, type Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';

/**
 * Pure. A cluster starts on a running engine that stays, and stops before it does. Its data is deleted only right
 * before a start that cannot use it, because its version is lower, or on request.
 */
export function nextClusterStep(goal: Goal, seen: Observed, driver: DriverInfo): ClusterStep | undefined {
  const { cluster } = seen;
  if (clusterMustStop(goal, seen, driver)) return { do: 'stop' };
  if (goal.resetCluster && seen.machine.state === 'on')
    return cluster.state === 'stopped' ? { do: 'reset' } : undefined;
  if (!goal.on || !goal.cluster || (cluster.state !== 'absent' && cluster.state !== 'stopped')) return undefined;
  const { name } = goal.engine;
  if (seen.engines[name].state !== 'running' || engineMustStop(name, goal, seen, driver)) return undefined;
  return clusterMustReset(goal, seen) ? { do: 'reset' } : { do: 'start', spec: goal.cluster };
}

/**
 * Performs a step; a start with an empty version gets the installed one, so that nothing is upgraded unasked, or the
 * newest available. The choice shows as the running cluster's version and is not written to the settings.
 */
export async function performCluster(
  step: ClusterStep,
  seen: Observed,
  driver: Driver,
  signal: AbortSignal,
): Promise<void> {
  if (!driver.cluster) throw new RdError('ERR_INTERNAL', `The ${driver.name} driver has no cluster to ${step.do}.`);
  if (step.do !== 'start') return driver.cluster.perform(step, signal);
  const version = await chosenVersion(step.spec, seen, driver, signal);
  await driver.cluster.perform({ do: 'start', spec: { ...step.spec, version } }, signal);
}

async function chosenVersion(spec: ClusterSpec, seen: Observed, driver: Driver, signal: AbortSignal): Promise<string> {
  const known = spec.version || installedVersion(seen);
  if (known) return known;
  const newest = (await driver.cluster?.versions(signal))?.[0];
  if (newest) return newest;
  throw new RdError('ERR_DRIVER_FAILED', `The ${driver.name} driver offers no cluster version.`, {
    advice: 'Check the network, or set kubernetes.version, or set kubernetes.enabled to false.',
  });
}
