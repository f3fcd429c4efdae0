import { isObject, type JsonObject, type JsonValue } from '../json.ts';

/**
 * Reads an object's own member. Documents are untrusted: a member called `constructor` or `__proto__` must neither
 * resolve to the prototype nor modify it.
 */
export function own(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets an own member, even `__proto__`. */
export function put(object: JsonObject, name: string, value: JsonValue): void {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  else object[name] = value;
}

/** Returns a deep copy. */
export function copyOf(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(copyOf);
  if (isObject(value)) return copyOfObject(value);
  return value;
}

export function copyOfObject(object: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const name of Object.keys(object)) put(copy, name, copyOf(object[name] ?? null));
  return copy;
}

/** Compares JSON values deeply, ignoring member order. */
export function equal(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]))
    );
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
  );
}
