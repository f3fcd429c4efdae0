import type { ClusterStatus, DriverInfo, EngineName, EngineStatus, MachineStatus } from '../drivers/driver.ts';
import type { Observed } from '../plan/observed.ts';
import { clusterSpec, engineSpec, machineSpec } from '../plan/spec.ts';
import type { Settings } from '../settings/settings.gen.ts';

export interface AssumedInput {
  /** The last look that succeeded, if any. */
  seen: Observed | undefined;
  /** The settings that were last worked on. */
  settings: Settings;
  driver: DriverInfo;
  /** Why nothing newer is known, as a clause. */
  reason: string;
}

/**
 * Pure. What a plan reckons with while nobody knows what runs: everything may run that the settings ask for, whatever the power,
 * because a service that was killed leaves it running. What was seen running is taken to run still. Too much is warned of
 * rather than too little.
 */
export function assumed({ seen, settings, driver, reason }: AssumedInput): Observed {
  const { name } = settings.containerEngine;
  const engine = (one: EngineName): EngineStatus => {
    const last: EngineStatus = seen?.engines[one] ?? { state: 'stopped' };
    return last.state === 'stopped' && one === name
      ? { state: 'running', spec: engineSpec(settings), endpoint: '', version: '', workload: {} }
      : last;
  };
  return {
    assumed: reason,
    machine: machine(seen, settings),
    engines: { moby: engine('moby'), containerd: engine('containerd') },
    cluster: driver.hasCluster ? cluster(seen, settings) : { state: 'unsupported' },
  };
}

function machine(seen: Observed | undefined, settings: Settings): MachineStatus {
  const last = seen?.machine;
  return last?.state === 'on' || last?.state === 'broken' ? last : { state: 'on', spec: machineSpec(settings) };
}

/** The data of a cluster outlives its process, so an installed one is assumed even where none is to run. */
function cluster(seen: Observed | undefined, settings: Settings): ClusterStatus | { state: 'unsupported' } {
  const last = seen?.cluster;
  if (last?.state === 'running' || last?.state === 'unresponsive') return last;
  const spec = clusterSpec(settings);
  const installedVersion = last?.state === 'stopped' ? last.installedVersion : spec.version;
  if (!settings.kubernetes.enabled) return last ?? { state: 'stopped', installedVersion };
  return { state: 'running', installedVersion, spec: { ...spec, version: installedVersion }, ready: false };
}
