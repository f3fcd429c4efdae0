import type { JsonObject } from '../json.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Plan, PlanRequest } from './change.ts';
import { differences, payloadOf } from './diff.ts';

/**
 * The body of `PUT /v1/settings` that carries out a plan: the schema version and the differing settings, boolean maps
 * whole. Omits blocked changes, anything the plan does not list, extensions and power. Undefined when there is nothing
 * to send.
 */
export function patchOf(plan: Plan, request: PlanRequest, live: Settings): JsonObject | undefined {
  const allowed = new Set(plan.changes.filter((change) => !change.blocked).map(({ path, key }) => nameOf(path, key)));
  return payloadOf(
    differences(live, request).filter(({ path, key }) => allowed.has(nameOf(path, key))),
    live,
  );
}

function nameOf(path: string, key: string | undefined): string {
  return JSON.stringify(key === undefined ? [path] : [path, key]);
}
