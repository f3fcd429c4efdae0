import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { own } from './own.ts';

/**
 * Returns the reply of `GET /v1/settings/locked` for a locked profile: its shape, with every value that is not an
 * object replaced by `true`. Empty objects stay, and so does `version`, which every profile contains.
 */
export function lockRecord(profile: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(profile).map(([name, value]): [string, JsonValue] => [name, recordOf(value)]),
  );
}

/**
 * True when the setting is locked. A map is locked as a whole, whether or not the record names entries; `version` is
 * never locked.
 */
export function isLocked(record: JsonObject, path: string): boolean {
  if (path === 'version') return false;
  let node: JsonValue | undefined = record;
  for (const name of path.split('.')) {
    // A profile with a plain value in place of a section locks the whole section.
    if (node === true) return true;
    if (!isObject(node)) return false;
    node = own(node, name);
  }
  return node !== undefined && node !== false && node !== null;
}

function recordOf(value: JsonValue): JsonValue {
  return isObject(value) ? lockRecord(value) : true;
}
