import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { parseByteSize } from './byte-size.ts';
import type { Field } from './field.ts';
import { fieldAt, type SchemaNode, schemaTree } from './fields.ts';
import { canonicalKubernetesVersion } from './kubernetes-version.ts';
import { copyOf, equal, own } from './own.ts';
import type { SettingPath } from './settings.gen.ts';

/**
 * A copy of partial settings in stored form: synonyms replaced, cluster versions normalized, and strings such as
 * `"true"` or `"6443"` converted to the setting's type. Anything else, including unknown members, is kept for
 * validation to report.
 */
export function canonicalize(payload: JsonObject): JsonObject {
  return canonicalMembers(payload, schemaTree(), storedValue);
}

/** Like `canonicalize`, but strings are not converted: in a hand-written document that is a mistake. */
export function canonicalizeTexts(payload: JsonObject): JsonObject {
  return canonicalMembers(payload, schemaTree(), storedText);
}

/** The form for comparing values of a setting: the stored form, with sizes in bytes. Not for storing. */
export function canonicalValue(path: SettingPath, value: JsonValue): JsonValue {
  const field = fieldAt(path);
  if (!field) return value;
  const stored = storedValue(field, value);
  if (field.format === 'byte-size' && typeof stored === 'string') return parseByteSize(stored) ?? stored;
  return stored;
}

/** True when both values are equivalent for this setting. An absent value only equals an absent one. */
export function sameValue(path: SettingPath, a: JsonValue | undefined, b: JsonValue | undefined): boolean {
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
