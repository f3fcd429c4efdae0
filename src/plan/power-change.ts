import type { Change } from './change.ts';
import { clusterMustReset } from './consequences.ts';
import { installedVersion, isUp, type Observed } from './observed.ts';
import type { Goal } from './spec.ts';

/**
 * The change of power, if the plan asks for one. A stop interrupts what runs and so counts as `restart`; with nothing running
 * it is `none`. A start interrupts nothing and is `live`, unless the cluster that it starts is older than the installed one.
 */
export function powerChange(before: 'started' | 'stopped', goal: Goal, observed: Observed): Change | undefined {
  const after = goal.on ? 'started' : 'stopped';
  if (before === after) return undefined;
  return { path: 'state', action: 'update', before, after, ...cost(goal, observed) };
}

function cost(goal: Goal, observed: Observed): Pick<Change, 'severity' | 'reason'> {
  if (!goal.on) {
    return isUp(observed) || observed.machine.state === 'on'
      ? { severity: 'restart', reason: 'everything that runs is stopped' }
      : { severity: 'none', reason: 'nothing is running' };
  }
  if (clusterMustReset(goal, observed)) {
    const installed = installedVersion(observed);
    const reason = installed
      ? `the start deletes the data of the installed cluster, which is newer (${installed})`
      : 'the start deletes the data of the installed cluster if that is newer';
    return { severity: 'reset', reason };
  }
  return { severity: 'live', reason: 'the backend is started with these settings' };
}
