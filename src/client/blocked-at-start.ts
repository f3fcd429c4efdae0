import type { DriverInfo } from '../drivers/driver.ts';
import type { Observed } from '../plan/backend.ts';
import { refuseBlocked } from '../plan/blocks.ts';
import type { Change, Plan, PlanRequest } from '../plan/change.ts';
import { changeName } from '../plan/kept.ts';
import { makePlan } from '../plan/plan.ts';
import { DEFAULT_MACHINE_OPTIONS } from '../settings/machine-options.gen.ts';
import type { StoredSettings } from './offline.ts';

export interface Skips {
  skipLocked: boolean;
  skipUnsupported: boolean;
}

interface StartInput extends Skips {
  /** In canonical form. */
  request: PlanRequest;
  stored: StoredSettings;
  /** Of the service that would be started. */
  driver: DriverInfo;
  /** The plan without a service, which knows locks and kept profiles, and not the driver. */
  estimate: Plan;
}

/**
 * Refuses, before a service is started for a request, what that service would refuse. Throws `ERR_SETTING_LOCKED`,
 * `ERR_SETTING_UNSUPPORTED`, `ERR_SETTING_KEPT`.
 */
export function refuseBlockedAtStart(input: StartInput): void {
  const { estimate, skipLocked, skipUnsupported } = input;
  const known = new Set(estimate.changes.filter(({ blocked }) => blocked).map(changeName));
  const changes = [...estimate.changes, ...planOfService(input).filter((change) => !known.has(changeName(change)))];
  const isSkipped = ({ blocked }: Change) =>
    (blocked?.by === 'lock' && skipLocked) || (blocked?.by === 'unsupported' && skipUnsupported);
  refuseBlocked({ ...estimate, changes: changes.filter((change) => !isSkipped(change)) });
}

/** What blocks a change does not depend on what runs. */
function planOfService({ request, stored, driver, estimate }: StartInput): Change[] {
  const { settings, machine = DEFAULT_MACHINE_OPTIONS, locks = {}, lockedBy } = stored;
  return makePlan({
    ...{ request, live: settings, machine, locks, driver },
    ...(lockedBy === undefined ? {} : { lockedBy }),
    power: 'stopped',
    observed: NOTHING_RUNS,
    target: estimate.target,
    generation: 0,
  }).changes;
}

const NOTHING_RUNS: Observed = {
  machine: { state: 'off' },
  engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
  cluster: { state: 'absent' },
};
