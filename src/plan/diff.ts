import { RdError } from '../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Blocks, PartialBlocks } from '../settings/blocks.gen.ts';
import { isBlockPath, managedLeaves, treeOf } from '../settings/blocks.ts';
import { sameValue } from '../settings/canonical.ts';
import type { ManagedPath } from '../settings/field.ts';
import { MANAGED_FIELDS } from '../settings/fields.ts';
import { leafAt, setLeaf } from '../settings/leaf-paths.ts';
import { mergeBlocks, mergeSettings } from '../settings/merge.ts';
import { equal } from '../settings/own.ts';
import { SCHEMA_VERSION, type SettingPath, type Settings } from '../settings/settings.gen.ts';
import type { PlanRequest } from './change.ts';

/** A setting, a field of a block, or an entry of a map, that differs from the request. */
export interface Difference {
  path: ManagedPath;
  key?: string;
  action: 'create' | 'update' | 'delete';
  before?: JsonValue;
  after?: JsonValue;
}

/** This map changes by installing and uninstalling, never by writing settings. */
export const EXTENSIONS: SettingPath = 'application.extensions.installed';

/** Settings and blocks. Another application has no blocks. */
type Managed = { settings: Settings } & PartialBlocks;

/**
 * Returns the differences between a request and the state in force, in schema order. Values are compared in canonical form. Arrays are whole values;
 * maps are compared by entry, and entries not mentioned stay unless the map is pruned. Throws `ERR_SETTINGS_INVALID` for a null outside a map.
 */
export function differences(
  live: Managed,
  request: Pick<PlanRequest, 'settings' | 'prune' | keyof Blocks>,
): Difference[] {
  const tree = treeOf(live);
  const requested = new Map(managedLeaves(request));
  return MANAGED_FIELDS.flatMap(({ path, type }) => {
    const pruned = type.startsWith('map<') && request.prune.includes(path);
    if (path === 'version' || !(requested.has(path) || pruned)) return [];
    const before = leafAt(tree, path);
    const after = requested.get(path);
    if (type.startsWith('map<')) return entryDifferences(path, before, after, pruned);
    if (after === undefined) return [];
    if (after === null) throw nullOutsideMap(path);
    // An empty version lets the service choose, so any version satisfies it.
    if (path === 'kubernetes.version' && after === '') return [];
    if (before !== undefined && sameValue(path, before, after)) return [];
    return [before === undefined ? { path, action: 'create', after } : { path, action: 'update', before, after }];
  });
}

/** Returns the blocks once these differences are resolved; a block without differences is that of `live`. */
export function blocksAfter(live: Blocks, resolved: readonly Difference[]): Blocks {
  const changes: JsonObject = {};
  for (const { path, key, after = null } of resolved) {
    if (!isBlockPath(path)) continue;
    setLeaf(changes, path, key === undefined ? after : { ...entriesOf(leafAt(changes, path)), [key]: after });
  }
  return mergeBlocks(live, changes);
}

/**
 * Returns the body of `PUT /v1/settings` that resolves these differences: the schema version and only the differing settings, with boolean maps whole
 * (a map in a request names every entry, and null removes one). Extensions are not written. Undefined when there is nothing to write.
 */
export function patchOf(resolved: readonly Difference[], live: Settings): JsonObject | undefined {
  const payload: JsonObject = {};
  const maps = new Map<ManagedPath, Map<string, JsonValue>>();
  for (const { path, key, after } of resolved) {
    if (path === EXTENSIONS || isBlockPath(path)) continue;
    if (key === undefined) {
      if (after !== undefined) setLeaf(payload, path, after);
      continue;
    }
    const entries = maps.get(path) ?? new Map(Object.entries(entriesOf(leafAt(live, path))));
    maps.set(path, entries.set(key, after ?? null));
  }
  for (const [path, entries] of maps) setLeaf(payload, path, Object.fromEntries(entries));
  return Object.keys(payload).length === 0 ? undefined : { version: SCHEMA_VERSION, ...payload };
}

/** Returns the settings once these differences are resolved. */
export function settingsAfter(live: Settings, resolved: readonly Difference[]): Settings {
  const patch = patchOf(resolved, live);
  return patch ? mergeSettings(live, patch) : live;
}

function entryDifferences(
  path: ManagedPath,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  prune: boolean,
) {
  const present = entriesOf(before);
  const requested = entriesOf(after);
  const removed = prune ? Object.keys(present).filter((key) => !Object.hasOwn(requested, key)) : [];
  const entryChanges: Difference[] = [];
  for (const key of [...Object.keys(requested), ...removed]) {
    const old = Object.hasOwn(present, key) ? present[key] : undefined;
    const value = Object.hasOwn(requested, key) ? requested[key] : null;
    if (value === undefined || value === null) {
      if (old !== undefined) entryChanges.push({ path, key, action: 'delete', before: old });
    } else if (old === undefined) {
      entryChanges.push({ path, key, action: 'create', after: value });
    } else if (!equal(old, value)) {
      entryChanges.push({ path, key, action: 'update', before: old, after: value });
    }
  }
  return entryChanges;
}

function entriesOf(map: JsonValue | undefined): JsonObject {
  return isObject(map) ? map : {};
}

function nullOutsideMap(path: ManagedPath): RdError {
  return new RdError('ERR_SETTINGS_INVALID', `"${path}" cannot be null: only an entry of a map can be removed.`, {
    advice: 'Leave the field out to leave it alone, or write the value that it should have.',
  });
}
