import { defined } from '../../../src/json.ts';
import type { PlanRequest } from '../../../src/plan/change.ts';
import { type GivenSetting, settingsPayload } from '../../arguments/setting-flags.ts';
import type { Caller } from '../../command.ts';
import { viewFor } from '../../views/view.ts';
import { showPlan } from '../plan.ts';

/**
 * Shows the changes and costs of the named settings, and of a start if `state` requests one, and returns the exit code. Plans with the running
 * service, or without one against the stored settings.
 */
export async function dryRun(
  settings: readonly GivenSetting[],
  state: PlanRequest['state'],
  caller: Caller,
  driver?: string,
): Promise<number> {
  const request = { settings: settingsPayload(settings), state, prune: [], wishes: [] };
  const desired = { request, portForwards: [], prunePortForwards: false };
  const flags = { how: 'set' as const, ...defined({ driver }) };
  return showPlan(desired, caller, viewFor(undefined, caller.io), flags);
}
