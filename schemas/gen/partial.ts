import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { WORDS } from './declaration.ts';

/** Returns the schema without the keywords that only our generator reads. */
export function plain(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema).filter(
    ([key]) => !key.startsWith('x-rd-') && key !== '$schema' && key !== '$id',
  );
  return Object.fromEntries(entries.map(([key, value]) => [key, plainValue(value)]));
}

function plainValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(plainValue);
  return isObject(value) ? plain(value) : value;
}

/** Returns the schema of a part of the declaration, without the keywords that only our generator reads. */
export function partial(schema: JsonObject): JsonObject {
  const sensitive = schema['x-rd-sensitive'] === true;
  const synonyms = isObject(schema['x-rd-synonyms']) ? Object.keys(schema['x-rd-synonyms']) : [];
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (WORDS.some((word) => word === key) || ['$schema', '$id', 'required'].includes(key)) continue;
    if (key === 'properties' && isObject(value)) result[key] = mapValues(value, partialOrSelf);
    else if (key === 'additionalProperties' && isObject(value)) result[key] = { anyOf: [value, { type: 'null' }] };
    else if (key === 'enum' && Array.isArray(value)) result[key] = [...value, ...synonyms];
    else result[key] = value;
  }
  if (!sensitive) return result;
  const { description = '', ...rest } = result;
  return { description, anyOf: [rest, { $ref: '#/$defs/secret' }] };
}

function partialOrSelf(value: JsonValue): JsonValue {
  return isObject(value) ? partial(value) : value;
}

function mapValues(object: JsonObject, each: (value: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, each(value)]));
}
