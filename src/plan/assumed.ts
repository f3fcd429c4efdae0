import type {
  ClusterStatus,
  DriverInfo,
  EngineName,
  EngineStatus,
  MachineSpec,
  MachineStatus,
} from '../drivers/driver.ts';
import { clusterSpec, type DesiredBackend, engineSpec, machineSpec, type Observed } from './backend.ts';

export interface AssumedInput {
  /** The last successful observation, if any. */
  seen: Observed | undefined;
  /** The desired state that the loop last worked on. */
  last: Omit<DesiredBackend, 'power'>;
  driver: DriverInfo;
  /** The reason for the missing observation, as a clause. */
  reason: string;
}

/**
 * Returns the state that a plan assumes while the running state is unknown: everything that the settings enable may
 * run, whatever the power, because a killed service leaves it running, and anything last seen running still does. Pure;
 * errs on the side of warning.
 */
export function assumeObserved({ seen, last, driver, reason }: AssumedInput): Observed {
  const { settings } = last;
  const { name } = settings.containerEngine;
  const engine = (one: EngineName): EngineStatus => {
    const status: EngineStatus = seen?.engines[one] ?? { state: 'stopped' };
    return status.state === 'stopped' && one === name
      ? { state: 'running', spec: engineSpec(settings, last), endpoint: '', version: '', workload: {} }
      : status;
  };
  return {
    assumed: reason,
    machine: machineOf(seen, machineSpec(settings, last)),
    engines: { moby: engine('moby'), containerd: engine('containerd') },
    cluster: driver.hasCluster ? cluster(seen, last) : { state: 'unsupported' },
  };
}

function machineOf(seen: Observed | undefined, spec: MachineSpec): MachineStatus {
  const last = seen?.machine;
  return last?.state === 'on' || last?.state === 'broken' ? last : { state: 'on', spec };
}

/** A cluster's data outlives its process, so an installed one is assumed even where none should run. */
function cluster(seen: Observed | undefined, desired: AssumedInput['last']): ClusterStatus | { state: 'unsupported' } {
  const last = seen?.cluster;
  if (last?.state === 'running' || last?.state === 'unresponsive') return last;
  const spec = clusterSpec(desired.settings, desired);
  const installedVersion = last?.state === 'stopped' ? last.installedVersion : spec.version;
  if (!desired.settings.kubernetes.enabled) return last ?? { state: 'stopped', installedVersion };
  return { state: 'running', installedVersion, spec: { ...spec, version: installedVersion }, ready: false };
}
