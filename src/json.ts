import { createHash } from 'node:crypto';

/** Any value that JSON can hold. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
/** A JSON object; a missing key reads as `undefined`. */
export type JsonObject = { [key: string]: JsonValue };

/** Maximum nesting of a document from outside; settings have seven levels. Deeper ones would exhaust the stack of recursions. */
export const MOST_LEVELS = 100;

/** True for JSON text that nests deeper than `MOST_LEVELS`, checked before it is parsed. For other texts the result means nothing. */
export function isTooDeep(text: string): boolean {
  let level = 0;
  for (let index = 0; index < text.length; index++) {
    const sign = text[index];
    if (sign === '"') index = stringEnd(text, index);
    else if (sign === '{' || sign === '[') level += 1;
    else if (sign === '}' || sign === ']') level -= 1;
    if (level > MOST_LEVELS) return true;
  }
  return false;
}

/** Returns the index of the quotation mark that ends the string beginning at `start`, or of the end of the text. */
function stringEnd(text: string, start: number): number {
  let index = start + 1;
  while (index < text.length && text[index] !== '"') index += text[index] === '\\' ? 2 : 1;
  return index;
}

/** True for a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * True if a value has at least the members of the sample, each of the same type, at every level; elements of a list are compared with the first one
 * of the sample, if there is one. It does not detect a wrong member of a union.
 */
export function hasShape<T>(value: unknown, sample: T): value is T {
  if (typeof sample !== 'object' || sample === null) return typeof value === typeof sample;
  if (Array.isArray(sample)) {
    return Array.isArray(value) && (sample.length === 0 || value.every((element) => hasShape(element, sample[0])));
  }
  return isObject(value) && Object.entries(sample).every(([key, member]) => hasShape(value[key], member));
}

/** Returns the value of a JSON text, or undefined if it is not JSON. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns JSON with sorted keys and no whitespace, so that equal values give equal text. */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) {
    // Long lists hold texts, which `JSON.stringify` writes faster.
    return value.every((item) => typeof item === 'string')
      ? JSON.stringify(value)
      : `[${value.map(canonicalJson).join(',')}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${entries.join(',')}}`;
}

/** Returns `sha256:…` of the canonical JSON. */
export function digestOf(value: JsonValue): string {
  return `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;
}

/** Returns indented JSON with a final newline. */
export function indentedJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Returns the object of a JSON text, or undefined for anything else. */
export function parseObject(text: string): JsonObject | undefined {
  const value = parseJson(text);
  return isObject(value) ? value : undefined;
}

/** Drops undefined members, to spread optional ones: `{ name, ...defined({ reason }) }`. */
export function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  // A loop instead of `Object.entries`: parsers of thousands of texts call this for each.
  const found: Partial<T> = {};
  for (const key in members) if (members[key] !== undefined) found[key] = members[key];
  return found as ReturnType<typeof defined<T>>;
}
