import { isObject, type JsonObject } from '../src/json.ts';

/**
 * Lays a later partial settings object over an earlier one: field by field, maps key by key, lists as a whole. A `null` stays,
 * because it says that an entry is to be removed. Neither argument is changed.
 */
export function layOver(earlier: JsonObject, later: JsonObject): JsonObject {
  const result: JsonObject = { ...earlier };
  for (const [key, value] of Object.entries(later)) {
    const below = result[key];
    result[key] = isObject(value) && isObject(below) ? layOver(below, value) : value;
  }
  return result;
}
