import type { Change, PlanRequest } from '../plan/change.ts';
import { removeLeaf } from '../settings/leaf-paths.ts';

/** The request without what the changes ask for; a map is left out as a whole, because it locks as a whole. */
export function withoutLocked(request: PlanRequest, changes: readonly Change[]): PlanRequest {
  const paths = new Set(changes.map((change) => change.path));
  const settings = structuredClone(request.settings);
  for (const path of paths) if (path !== 'state') removeLeaf(settings, path);
  return {
    settings,
    state: paths.has('state') ? 'unmanaged' : request.state,
    prune: request.prune.filter((path) => !paths.has(path)),
    ...(request.wishes ? { wishes: request.wishes.filter((path) => !paths.has(path)) } : {}),
  };
}
