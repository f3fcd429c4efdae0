// Only two parts of the package: loading all of it would add two milliseconds to every plan.
import lt from 'semver/functions/lt.js';
import parse from 'semver/functions/parse.js';
import type { DriverInfo, EngineName } from '../drivers/driver.ts';
import { type Goal, installedVersion, type Observed } from './backend.ts';
import { clusterDrift, type Drift, engineDrift, machineDrift } from './drift.ts';

/** The consequence of a goal for a part: how it differs, if it runs, and whether it must stop, perhaps to start again. */
export interface Consequence {
  drift?: Drift;
  mustStop: boolean;
}

/**
 * A goal, an observation, and the consequences for each running part. The plan reports these consequences and the loop
 * performs them, so the two cannot disagree.
 */
export interface Consequences {
  goal: Goal;
  observed: Observed;
  driver: DriverInfo;
  machine: Consequence;
  engines: Record<EngineName, Consequence>;
  /** `mustReset`: the installed cluster is newer than the desired version. */
  cluster: Consequence & { mustReset: boolean };
}

export function consequencesOf(goal: Goal, observed: Observed, driver: DriverInfo): Consequences {
  const machine = machineConsequence(goal, observed, driver);
  const engines = {
    moby: engineConsequence('moby', machine, goal, observed, driver),
    containerd: engineConsequence('containerd', machine, goal, observed, driver),
  };
  return { goal, observed, driver, machine, engines, cluster: clusterConsequence(engines, goal, observed, driver) };
}

function machineConsequence(goal: Goal, { machine }: Observed, driver: DriverInfo): Consequence {
  if (machine.state !== 'on') return { mustStop: machine.state === 'broken' };
  const drift = machineDrift(machine, goal.machine, driver);
  return { drift, mustStop: !goal.on || drift.restart.length > 0 };
}

function engineConsequence(
  name: EngineName,
  machine: Consequence,
  goal: Goal,
  observed: Observed,
  driver: DriverInfo,
): Consequence {
  const engine = observed.engines[name];
  if (engine.state !== 'running') return { mustStop: engine.state === 'unresponsive' };
  if (name !== goal.engine.name) return { mustStop: true };
  const drift = engineDrift(engine.spec, goal.engine, driver);
  const stays = goal.on && observed.machine.state === 'on' && !machine.mustStop && drift.restart.length === 0;
  return { drift, mustStop: !stays };
}

/** A cluster never runs without the engine that it was started on. */
function clusterConsequence(
  engines: Consequences['engines'],
  goal: Goal,
  observed: Observed,
  driver: DriverInfo,
): Consequences['cluster'] {
  const { cluster } = observed;
  const mustReset =
    goal.on && goal.cluster !== undefined && mayDowngrade(installedVersion(observed), goal.cluster.version);
  if (cluster.state !== 'running') return { mustStop: cluster.state === 'unresponsive', mustReset };
  if (!goal.cluster) return { mustStop: true, mustReset };
  const { engine } = cluster.spec;
  const drift = clusterDrift(cluster.spec, goal.cluster, driver);
  const hasEngine = observed.engines[engine].state === 'running' && !engines[engine].mustStop;
  return { drift, mustStop: !goal.on || !hasEngine || mustReset || drift.restart.length > 0, mustReset };
}

/**
 * True when going from `installed` to `wanted` deletes the cluster's data. An empty `wanted` expresses no preference.
 * An invalid version has no order; the driver rejects it, and nothing is deleted.
 */
export function isDowngrade(installed: string | undefined, desired: string): boolean {
  const from = parse(installed);
  const to = parse(desired);
  return from !== null && to !== null && lt(to, from);
}

/**
 * True if the change deletes, or may delete, the cluster's data. `''` stands for an installed cluster of unknown
 * version, for which any version may be a downgrade.
 */
export function mayDowngrade(installed: string | undefined, desired: string): boolean {
  return installed === '' ? parse(desired) !== null : isDowngrade(installed, desired);
}
