import { isObject, type JsonValue } from '../json.ts';
import { managedLeaves } from '../settings/blocks.ts';
import type { MaintenanceWindow } from '../settings/maintenance-window.ts';
import type { WatchRules } from '../settings/watch-rules.ts';
import type { Change, PlanRequest } from './change.ts';
import { forwardName } from './port-forwards.ts';

/** A profile that the service keeps in force, compared with the desktop after every change. */
export interface KeptProfile {
  /** `metadata.name` */
  name: string;
  /** Composed and checked by the tool. Contains secrets as plain values. */
  request: PlanRequest;
  watch: WatchRules;
  maintenance?: MaintenanceWindow;
  files: { path: string; sha256: string }[];
  /** Where the profile mentions each field, by path: `/home/me/team.yaml:7:5`. */
  places: Record<string, string>;
  /** The time of its last apply, RFC 3339. */
  appliedAt: string;
  /** Version of the desired state that resulted from its last apply. */
  generation: number;
  /** Names of the changes of the last apply that are still pending. */
  pending: string[];
}

export type { PlannedHow, SentKeep, SentWindow } from './apply.gen.ts';

/** Formats `containerEngine.name` or `application.extensions.installed[example/tool]`. */
export function changeName({ path, key }: Pick<Change, 'path' | 'key'>): string {
  return key === undefined ? path : `${path}[${key}]`;
}

const WHOLE = '*';

/** Returns the fields that a request determines: paths, and for maps their keys, or `*` for an exclusive map. */
function managedFields(request: PlanRequest): Map<string, Set<string>> {
  const { state, prune, portForwards } = request;
  const fields = new Map<string, Set<string>>();
  const add = (path: string, keys: readonly string[]) => fields.set(path, new Set(keys));
  const addValue = (path: string, value: JsonValue) =>
    add(path, isObject(value) && !prune.includes(path) ? Object.keys(value) : [WHOLE]);
  for (const [path, value] of managedLeaves(request)) if (path !== 'version') addValue(path, value);
  for (const path of prune) add(path, [WHOLE]);
  if (state !== 'unmanaged') add('state', [WHOLE]);
  if (portForwards) {
    const { entries, exclusive } = portForwards;
    add('portForwards', exclusive ? [WHOLE] : entries.map(forwardName));
  }
  return fields;
}

/** Lists fields that both requests determine. No two kept profiles may share one. */
export function commonFields(one: PlanRequest, other: PlanRequest): string[] {
  const theirs = managedFields(other);
  return [...managedFields(one)].flatMap(([path, keys]) => {
    const others = theirs.get(path);
    if (!others || keys.size === 0 || others.size === 0) return [];
    if (keys.has(WHOLE) || others.has(WHOLE)) return [path];
    return [...keys].filter((key) => others.has(key)).map((key) => changeName({ path, key }));
  });
}
