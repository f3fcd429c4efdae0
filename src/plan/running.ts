import type { DriverInfo } from '../drivers/driver.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';
import {
  CLUSTER_MEMBERS,
  clusterDrift,
  type Drift,
  ENGINE_MEMBERS,
  engineDrift,
  MACHINE_MEMBERS,
  machineDrift,
} from './drift.ts';
import type { Observed } from './observed.ts';
import { clusterSpec, engineSpec, machineSpec } from './spec.ts';

export type Part = 'machine' | 'engine' | 'cluster';

const OWNERS: readonly [Part, readonly { path: SettingPath }[]][] = [
  ['machine', MACHINE_MEMBERS],
  ['engine', ENGINE_MEMBERS],
  ['cluster', CLUSTER_MEMBERS],
];

/** The part whose spec contains a setting; undefined where no part depends on it. */
export function ownerOf(path: SettingPath): Part | undefined {
  return OWNERS.find(([, members]) => members.some((member) => member.path === path))?.[0];
}

/** How the running part differs from the desired settings; undefined where that part does not run. */
export function runningDrift(part: Part, desired: Settings, observed: Observed, driver: DriverInfo): Drift | undefined {
  switch (part) {
    case 'machine':
      return observed.machine.state === 'on' ? machineDrift(observed.machine, machineSpec(desired), driver) : undefined;
    case 'engine': {
      const engine = observed.engines[desired.containerEngine.name];
      return engine.state === 'running' ? engineDrift(engine.spec, engineSpec(desired), driver) : undefined;
    }
    case 'cluster':
      return observed.cluster.state === 'running'
        ? clusterDrift(observed.cluster.spec, clusterSpec(desired), driver)
        : undefined;
  }
}
