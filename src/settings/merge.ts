import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Blocks, PartialBlocks } from './blocks.gen.ts';
import { sameValue } from './canonical.ts';
import type { Field } from './field.ts';
import { FIELDS } from './fields.gen.ts';
import { assemble, blockTree, objectOf } from './fields.ts';
import { leafAt, setLeaf } from './leaf-paths.ts';
import { copyOf, copyOfObject } from './own.ts';
import type { SettingPath, Settings } from './settings.gen.ts';

/**
 * Applies an update: a list replaces the list, a map is merged by entry and `null` removes an entry, everything not
 * mentioned stays, unknown members are dropped. `version` never changes. The payload must be valid (`validate`); a
 * `null` outside a map is ignored.
 */
export function mergeSettings(current: Settings, payload: JsonObject): Settings {
  const merged = objectOf((field) => mergedAt(field, current, field.path === 'version' ? {} : payload));
  // Built from the schema that `Settings` is generated from, out of settings and a valid payload.
  return merged as Settings;
}

/** Applies `changes` to the blocks by the rules of `mergeSettings`. Returns `current` itself for a block none of whose fields is mentioned. */
export function mergeBlocks(current: Blocks, changes: PartialBlocks): Blocks {
  const merged = [...blockTree()].map(([name, node]): [string, JsonValue] => {
    const before = leafAt(current, name) ?? null;
    if (leafAt(changes, name) === undefined || 'field' in node) return [name, before];
    return [name, assemble(node.section, (field) => mergedAt(field, current, changes))];
  });
  // Built from the schemas that `Blocks` is generated from.
  return Object.fromEntries(merged) as Blocks;
}

function mergedAt(field: Field, current: JsonObject, changes: JsonObject): JsonValue {
  const before = leafAt(current, field.path) ?? copyOf(field.default);
  return mergeValue(field, before, leafAt(changes, field.path) ?? null);
}

/** Merges one field. */
function mergeValue(field: Field, before: JsonValue, desired: JsonValue): JsonValue {
  if (desired === null) return copyOf(before);
  if (!field.type.startsWith('map') || !isObject(desired)) return copyOf(desired);
  const kept = isObject(before) ? copyOfObject(before) : {};
  const entries = new Map(Object.entries(kept));
  for (const [key, value] of Object.entries(desired)) {
    if (value === null) entries.delete(key);
    else entries.set(key, copyOf(value));
  }
  return Object.fromEntries(entries);
}

/** Returns the settings whose values differ, in schema order; equivalent spellings are equal. */
export function changedPaths(before: JsonObject, after: JsonObject): SettingPath[] {
  return FIELDS.filter(
    ({ path }) => path !== 'version' && !sameValue(path, leafAt(before, path), leafAt(after, path)),
  ).map(({ path }) => path);
}

/**
 * Returns the part of a desired state to validate. Its `null` removes an entry of any map, while a settings write
 * cannot remove one from a map of strings.
 */
export function withoutRemovals(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const { path, type } of FIELDS) {
    const map = type === 'map<string,string>' ? leafAt(copy, path) : undefined;
    if (isObject(map))
      setLeaf(copy, path, Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null)));
  }
  return copy;
}
