import type { ManagedPath, Part } from '../settings/field.ts';
import { busyEngines, clusterHasProcess, installedVersion } from './backend.ts';
import type { Change } from './change.ts';
import type { Consequence, Consequences } from './consequences.ts';

import type { Cost } from './severity.ts';

/** Parts that a plan starts or stops although neither settings nor power change, because they exited on their own or were stopped. */
const RUNTIME_PATHS = ['service', 'machine', 'engine', 'cluster'] as const;

/** True for a change of a running part, as opposed to a setting or the power state. */
export function isRuntimeChange({ path }: Pick<Change, 'path'>): boolean {
  return RUNTIME_PATHS.some((part) => part === path);
}

export interface RuntimeInput {
  /** Consequences of the goal after the plan's settings change; its power is the current one. */
  consequences: Consequences;
  /** Settings that the plan changes, whose cost is reported with them. */
  changed: ReadonlySet<ManagedPath>;
}

/** Returns the parts that have drifted, in start order. Empty while the running state is unknown, because then it is assumed to match. */
export function runtimeChanges(input: RuntimeInput): Change[] {
  const { goal, observed } = input.consequences;
  if (observed.assumed !== undefined) return [];
  if (!goal.on) return stoppedParts(input.consequences);
  return [machineUp, engineUp, clusterUp].flatMap((part) => part(input) ?? []);
}

const POWER_COSTS: Record<'started' | 'stopped', Cost> = {
  started: { severity: 'live', reason: 'the backend starts with these settings' },
  stopped: { severity: 'restart', reason: 'stops everything that is running' },
};

/** Returns a change of the backend's power. A start interrupts nothing; a stop counts as `restart`, because it interrupts what runs. */
export function powerChange(after: 'started' | 'stopped', cost: Cost = POWER_COSTS[after]): Change {
  return { path: 'state', action: 'update', before: after === 'started' ? 'stopped' : 'started', after, ...cost };
}

/** The restart of a service that was not stopped cleanly. Parts that it left may still be running. */
export const SERVICE_START: Change = {
  path: 'service',
  action: 'update',
  before: 'stopped',
  after: 'started',
  severity: 'live',
  reason: 'it was not stopped deliberately, so it should be running',
};

function machineUp({ consequences, changed }: RuntimeInput): Change | undefined {
  const { machine } = consequences.observed;
  switch (machine.state) {
    case 'absent':
    case 'off':
      return startChange('machine', 'stopped');
    case 'broken':
      return restartChange('machine', 'broken', 'it does not work, and is started anew');
    case 'on':
      return driftChange('machine', consequences.machine, changed, machine.repair !== undefined);
  }
}

function engineUp({ consequences: { goal, observed, engines }, changed }: RuntimeInput): Change | undefined {
  const { name } = goal.engine;
  const other = busyEngines(observed).find((busy) => busy !== name);
  if (other !== undefined) {
    // The switch and its cost are part of the setting's change.
    if (changed.has('containerEngine.name')) return undefined;
    return { ...restartChange('engine', other, `${other} is stopped and ${name} is started`), after: name };
  }
  const engine = observed.engines[name];
  switch (engine.state) {
    case 'stopped':
      return startChange('engine', 'stopped');
    case 'unresponsive':
      return restartChange('engine', 'unresponsive', 'it does not answer, and is started anew');
    case 'running':
      return driftChange('engine', engines[name], changed, false);
  }
}

function clusterUp({ consequences, changed }: RuntimeInput): Change | undefined {
  const { goal, observed } = consequences;
  const { cluster } = observed;
  const has = clusterHasProcess(observed);
  if (!goal.cluster) {
    if (!has || changed.has('kubernetes.enabled')) return undefined;
    return { ...restartChange('cluster', 'started', 'it runs and should not'), after: 'stopped' };
  }
  // The version's cost is part of its change.
  if (changed.has('kubernetes.enabled')) return undefined;
  if (consequences.cluster.mustReset) {
    if (changed.has('kubernetes.version')) return undefined;
    const reason = `deletes its data, because the installed version is newer (${installedVersion(observed) || 'unknown'})`;
    return { ...restartChange('cluster', has ? 'started' : 'stopped', reason), severity: 'reset' };
  }
  switch (cluster.state) {
    case 'running': {
      const drift = driftChange('cluster', consequences.cluster, changed, false);
      return (
        drift ??
        (cluster.ready ? undefined : { ...startChange('cluster', 'starting'), reason: 'it does not respond yet' })
      );
    }
    case 'unresponsive':
      return restartChange('cluster', 'unresponsive', 'it does not answer, and is started anew');
    default:
      return startChange('cluster', 'stopped');
  }
}

/** Returns the parts that run although they should not, in start order. */
function stoppedParts({ observed }: Consequences): Change[] {
  const { machine } = observed;
  return [
    ...(machine.state === 'on' || machine.state === 'broken' ? [stopChange('machine')] : []),
    ...(busyEngines(observed).length > 0 ? [stopChange('engine')] : []),
    ...(clusterHasProcess(observed) ? [stopChange('cluster')] : []),
  ];
}

function startChange(path: Part, before: string): Change {
  return {
    path,
    action: 'update',
    before,
    after: 'started',
    severity: 'live',
    reason: 'it should be running and is not',
  };
}

function stopChange(path: Part): Change {
  const reason = 'it should not be running';
  return { path, action: 'update', before: 'started', after: 'stopped', severity: 'restart', reason };
}

function restartChange(path: Part, before: string, reason: string): Change {
  return { path, action: 'update', before, after: 'restarted', severity: 'restart', reason };
}

/** Returns the change of a part that was started, or last adjusted, with settings other than those in force. */
function driftChange(
  path: Part,
  { drift }: Consequence,
  changed: ReadonlySet<ManagedPath>,
  repair: boolean,
): Change | undefined {
  const { live, restart } = drift ?? { live: [], restart: [] };
  const due = restart.filter((setting) => !changed.has(setting));
  if (due.length > 0)
    return restartChange(path, 'started', `it runs with another ${due.join(', ')} than the settings say`);
  const open = live.filter((setting) => !changed.has(setting));
  if (open.length === 0 && !repair) return undefined;
  const reason = open.length > 0 ? `${open.join(', ')} has not reached it yet` : 'part of it is missing';
  return { path, action: 'update', before: 'started', after: 'adjusted', severity: 'live', reason };
}
