import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { copyOf, own, put } from './own.ts';
import type { SettingPath } from './settings.gen.ts';

/** Returns the value at a dotted path, including paths of older versions, or undefined if a parent is missing. */
export function leafAt(object: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const name of path.split('.')) {
    if (!isObject(value)) return undefined;
    value = own(value, name);
  }
  return value;
}

/** Sets the value at a dotted path in place; missing sections are created, and a non-object in their place is replaced. */
export function setLeaf(object: JsonObject, path: string, value: JsonValue): void {
  const names = path.split('.');
  const last = names.pop() ?? '';
  let section = object;
  for (const name of names) {
    const known = own(section, name);
    if (isObject(known)) {
      section = known;
    } else {
      const made: JsonObject = {};
      put(section, name, made);
      section = made;
    }
  }
  put(section, last, value);
}

/** Deletes the value at a dotted path in place; parent sections stay, even if empty. */
export function removeLeaf(object: JsonObject, path: string): void {
  const dot = path.lastIndexOf('.');
  const section = dot === -1 ? object : leafAt(object, path.slice(0, dot));
  if (isObject(section)) delete section[path.slice(dot + 1)];
}

/** Returns the known settings present in a partial object, in schema order. */
export function leaves(partial: JsonObject): [SettingPath, JsonValue][] {
  return FIELDS.flatMap(({ path }) => {
    const value = leafAt(partial, path);
    return value === undefined ? [] : [[path, value] satisfies [SettingPath, JsonValue]];
  });
}

/** Returns a copy with only the known settings; other members, such as those left by old releases, are dropped. */
export function knownSettings(partial: JsonObject): JsonObject {
  const known: JsonObject = {};
  for (const [path, value] of leaves(partial)) setLeaf(known, path, copyOf(value));
  return known;
}

/** Returns the RFC 6901 pointer of a dotted path. Setting names contain no dots; for map entries use `pointerTo`. */
export function pointerOf(path: string): string {
  return path === '' ? '' : pointerTo(path.split('.'));
}

/** Returns the RFC 6901 pointer of a list of names. */
export function pointerTo(names: readonly string[]): string {
  return names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Returns the names in an RFC 6901 pointer. */
export function pointerNames(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Returns the value at an RFC 6901 pointer, including map and list entries. */
export function valueAt(root: JsonValue, pointer: string): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const name of pointerNames(pointer)) {
    if (Array.isArray(value)) value = value[Number(name)];
    else value = isObject(value) ? own(value, name) : undefined;
  }
  return value;
}
