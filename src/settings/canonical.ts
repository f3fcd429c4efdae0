import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Field, ManagedPath } from './field.ts';
import { fieldAt, type SchemaNode, schemaTree } from './fields.ts';
import { copyOf, equal, own } from './own.ts';

/**
 * Returns a copy of partial settings in stored form: synonyms replaced, cluster versions normalized, and strings such
 * as `"true"` or `"6443"` converted to the setting's type. Anything else, including unknown members, is kept for
 * validation to report.
 */
export function canonicalize(payload: JsonObject): JsonObject {
  return canonicalMembers(payload, schemaTree(), storedValue);
}

/**
 * Returns a copy of partial settings with synonyms replaced and cluster versions normalized. Strings are not converted to other types, because in a
 * hand-written document they are a mistake.
 */
export function canonicalizeTexts(payload: JsonObject): JsonObject {
  return canonicalMembers(payload, schemaTree(), storedText);
}

/** Returns a value in the form used for comparison: the stored form, with sizes in bytes. Not for storing. */
export function canonicalValue(path: ManagedPath, value: JsonValue): JsonValue {
  const field = fieldAt(path);
  if (!field) return value;
  const stored = storedValue(field, value);
  if (field.format === 'byte-size' && typeof stored === 'string') return parseByteSize(stored) ?? stored;
  return stored;
}

/** True when both values are equivalent for this setting. An absent value only equals an absent one. */
export function sameValue(path: ManagedPath, a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return equal(canonicalValue(path, a), canonicalValue(path, b));
}

function canonicalMembers(
  object: JsonObject,
  members: ReadonlyMap<string, SchemaNode>,
  stored: (field: Field, value: JsonValue) => JsonValue,
): JsonObject {
  const entries = Object.keys(object).map((name): [string, JsonValue] => {
    const value = own(object, name) ?? null;
    const node = members.get(name);
    if (node && 'field' in node) return [name, stored(node.field, copyOf(value))];
    if (node && isObject(value)) return [name, canonicalMembers(value, node.section, stored)];
    return [name, copyOf(value)];
  });
  return Object.fromEntries(entries);
}

function storedValue(field: Field, value: JsonValue): JsonValue {
  if (typeof value !== 'string') return value;
  if (field.type === 'boolean') return value === 'true' ? true : value === 'false' ? false : value;
  if (field.type === 'integer') {
    const number = Number(value);
    return value.trim() !== '' && Number.isFinite(number) ? number : value;
  }
  return storedText(field, value);
}

function storedText(field: Field, value: JsonValue): JsonValue {
  if (typeof value !== 'string' || field.type !== 'string') return value;
  if (field.format === 'kubernetes-version') return canonicalKubernetesVersion(value);
  const synonyms = field.synonyms ?? {};
  return Object.hasOwn(synonyms, value) ? (synonyms[value] ?? value) : value;
}

const SIZE = /^(\d+(?:\.\d+)?) ?([kmgtpezy]?)(i?b)?$/i;
const SCALES = 'kmgtpezy';

/**
 * Parses a size such as `100GiB`, `1.5 tb` or `1234` to bytes; `undefined` for anything else. Binary units (`ib`) are
 * powers of 1024, the others powers of 1000; case-insensitive. Fractions of a byte are rounded.
 */
export function parseByteSize(text: string): number | undefined {
  // Longer strings are not sizes; skip the regular expression.
  const match = text.length > 64 ? null : SIZE.exec(text);
  if (!match) return undefined;
  const [, digits = '', scale = '', unit = ''] = match;
  const base = unit.length === 2 ? 1024 : 1000;
  const bytes = Math.round(Number(digits) * base ** (SCALES.indexOf(scale.toLowerCase() || ' ') + 1));
  return Number.isFinite(bytes) ? bytes : undefined;
}

const SPELLING = /^v?(\d{1,9}\.\d{1,9}\.\d{1,9})(?:\+k3s\d+)?$/;
const PLAIN = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z][0-9A-Za-z.-]{0,63})?$/;

/** Turns `v1.30.2`, `1.30.2+k3s1` and `v1.30.2+k3s1` into `1.30.2`; other strings are unchanged. */
export function canonicalKubernetesVersion(text: string): string {
  return SPELLING.exec(text)?.[1] ?? text;
}

/** True for `X.Y.Z`, with or without a pre-release, whether or not it is available. */
export function isKubernetesVersion(text: string): boolean {
  return PLAIN.test(text);
}
