import type { ClusterStatus, EngineName, EngineStatus, MachineStatus } from '../drivers/driver.ts';

/** What the drivers reported last. */
export interface Observed {
  /** Why this could not be looked at and is assumed, as a clause; absent for what was seen. */
  assumed?: string;
  machine: MachineStatus;
  engines: Record<EngineName, EngineStatus>;
  cluster: ClusterStatus | { state: 'unsupported' };
}

export const ENGINE_NAMES: readonly EngineName[] = ['moby', 'containerd'];

/** The engines with a process, also one that does not answer. */
export function busyEngines(observed: Observed): EngineName[] {
  return ENGINE_NAMES.filter((name) => observed.engines[name].state !== 'stopped');
}

/** True while an engine or the cluster has a process: then a change can interrupt something. */
export function isUp(observed: Observed): boolean {
  return busyEngines(observed).length > 0 || clusterHasProcess(observed);
}

export function clusterHasProcess(observed: Observed): boolean {
  return observed.cluster.state === 'running' || observed.cluster.state === 'unresponsive';
}

/** Version of the cluster whose data is on the machine's disk, running or not; undefined where there is none. */
export function installedVersion(observed: Observed): string | undefined {
  return 'installedVersion' in observed.cluster ? observed.cluster.installedVersion : undefined;
}
