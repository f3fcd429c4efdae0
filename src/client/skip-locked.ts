import { isObject, type JsonObject } from '../json.ts';
import type { Change, PlanRequest } from '../plan/change.ts';

/** The request without what the changes ask for; a map is left out as a whole, because it locks as a whole. */
export function withoutLocked(request: PlanRequest, changes: readonly Change[]): PlanRequest {
  const paths = new Set(changes.map((change) => change.path));
  return {
    settings: drop(request.settings, '', paths),
    state: paths.has('state') ? 'unmanaged' : request.state,
    prune: request.prune.filter((path) => !paths.has(path)),
  };
}

function drop(settings: JsonObject, prefix: string, paths: ReadonlySet<string>): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(settings)) {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    if (paths.has(path)) continue;
    result[key] = isObject(value) ? drop(value, path, paths) : value;
  }
  return result;
}
