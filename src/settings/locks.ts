import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { own } from './own.ts';

/**
 * What `GET /v1/settings/locked` shows for a locked profile: its shape, with every value that is not an object replaced by
 * `true`. Empty objects stay, and so does `version`, which every profile carries.
 */
export function lockRecord(profile: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(profile).map(([name, value]): [string, JsonValue] => [name, recordOf(value)]),
  );
}

/**
 * True when a lock holds the setting. A map is held as a whole, whether the record names entries or is empty there;
 * `version` is held by nothing.
 */
export function isLocked(record: JsonObject, path: string): boolean {
  if (path === 'version') return false;
  let node: JsonValue | undefined = record;
  for (const name of path.split('.')) {
    // A profile with a plain value where a section belongs: the whole section counts as held.
    if (node === true) return true;
    if (!isObject(node)) return false;
    node = own(node, name);
  }
  return node !== undefined && node !== false && node !== null;
}

function recordOf(value: JsonValue): JsonValue {
  return isObject(value) ? lockRecord(value) : true;
}
