import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { sameValue } from './canonical.ts';
import type { Field } from './field.ts';
import { FIELDS } from './fields.gen.ts';
import { objectOf } from './fields.ts';
import { leafAt, setLeaf } from './leaf-paths.ts';
import { copyOf, copyOfObject } from './own.ts';
import type { SettingPath, Settings } from './settings.gen.ts';

/**
 * Applies an update: a list replaces the list, a map is merged by entry and `null` removes an entry, everything not
 * mentioned stays, unknown members are dropped. `version` never changes. The payload must be valid (`validate`); a
 * `null` outside a map is ignored.
 */
export function mergeSettings(current: Settings, payload: JsonObject): Settings {
  const merged = objectOf((field) => {
    const before = leafAt(current, field.path) ?? copyOf(field.default);
    const desired = field.path === 'version' ? undefined : leafAt(payload, field.path);
    return desired === undefined ? copyOf(before) : mergeValue(field, before, desired);
  });
  // Built from the schema that `Settings` is generated from, out of settings and a valid payload.
  return merged as Settings;
}

/** The merged value of one setting. */
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

/** The settings whose values differ, in schema order; equivalent spellings are equal. */
export function changedPaths(before: JsonObject, after: JsonObject): SettingPath[] {
  return FIELDS.filter(
    ({ path }) => path !== 'version' && !sameValue(path, leafAt(before, path), leafAt(after, path)),
  ).map(({ path }) => path);
}

/**
 * The part of a desired state to validate: there `null` removes an entry of any map, while a settings write cannot
 * remove one from a map of strings.
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
