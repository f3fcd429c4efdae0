import type { ClusterStatus, EngineName, EngineStatus, MachineStatus } from '../drivers/driver.ts';

/** The drivers' last observation. */
export interface Observed {
  /** Why this was not observed but assumed, as a clause; absent for an observation. */
  assumed?: string;
  machine: MachineStatus;
  engines: Record<EngineName, EngineStatus>;
  cluster: ClusterStatus | { state: 'unsupported' };
}

export const ENGINE_NAMES: readonly EngineName[] = ['moby', 'containerd'];

/** The engines with a process, including unresponsive ones. */
export function busyEngines(observed: Observed): EngineName[] {
  return ENGINE_NAMES.filter((name) => observed.engines[name].state !== 'stopped');
}

/** True while an engine or the cluster has a process, so that a change can interrupt it. */
export function isUp(observed: Observed): boolean {
  return busyEngines(observed).length > 0 || clusterHasProcess(observed);
}

export function clusterHasProcess(observed: Observed): boolean {
  return observed.cluster.state === 'running' || observed.cluster.state === 'unresponsive';
}

/** Version of the cluster whose data is on disk, running or not; undefined where there is none. */
export function installedVersion(observed: Observed): string | undefined {
  return 'installedVersion' in observed.cluster ? observed.cluster.installedVersion : undefined;
}
