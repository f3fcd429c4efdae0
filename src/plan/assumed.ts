import type {
  ClusterStatus,
  DriverInfo,
  EngineName,
  EngineStatus,
  MachineSpec,
  MachineStatus,
} from '../drivers/driver.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { clusterSpec, type DesiredBackend, engineSpec, machineSpec, type Observed } from './backend.ts';

export interface AssumedInput {
  /** The last successful observation, if any. */
  seen: Observed | undefined;
  /** What was last worked on. */
  last: Pick<DesiredBackend, 'settings' | 'machine'>;
  driver: DriverInfo;
  /** Why there is no newer observation, as a clause. */
  reason: string;
}

/**
 * Pure. The state that a plan assumes while the running state is unknown: everything that the settings enable may run,
 * whatever the power, because a killed service leaves it running. Anything last seen running is assumed to run still.
 * Errs on the side of warning.
 */
export function assumed({ seen, last: { settings, machine }, driver, reason }: AssumedInput): Observed {
  const { name } = settings.containerEngine;
  const engine = (one: EngineName): EngineStatus => {
    const last: EngineStatus = seen?.engines[one] ?? { state: 'stopped' };
    return last.state === 'stopped' && one === name
      ? { state: 'running', spec: engineSpec(settings), endpoint: '', version: '', workload: {} }
      : last;
  };
  return {
    assumed: reason,
    machine: machineOf(seen, machineSpec(settings, machine)),
    engines: { moby: engine('moby'), containerd: engine('containerd') },
    cluster: driver.hasCluster ? cluster(seen, settings) : { state: 'unsupported' },
  };
}

function machineOf(seen: Observed | undefined, spec: MachineSpec): MachineStatus {
  const last = seen?.machine;
  return last?.state === 'on' || last?.state === 'broken' ? last : { state: 'on', spec };
}

/** A cluster's data outlives its process, so an installed one is assumed even where none should run. */
function cluster(seen: Observed | undefined, settings: Settings): ClusterStatus | { state: 'unsupported' } {
  const last = seen?.cluster;
  if (last?.state === 'running' || last?.state === 'unresponsive') return last;
  const spec = clusterSpec(settings);
  const installedVersion = last?.state === 'stopped' ? last.installedVersion : spec.version;
  if (!settings.kubernetes.enabled) return last ?? { state: 'stopped', installedVersion };
  return { state: 'running', installedVersion, spec: { ...spec, version: installedVersion }, ready: false };
}
