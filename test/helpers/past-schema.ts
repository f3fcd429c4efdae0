import type { JsonObject } from '../../src/json.ts';
import { pastShape } from '../../src/settings/past-shape.ts';

type Names = NonNullable<ReturnType<typeof pastShape>>['names'];
type Rule = Extract<Names[string], { types: readonly string[] }>;

/** A JSON schema of the shape of an older settings version, without `version`. */
export function pastSchema(version: number): JsonObject {
  const shape = pastShape(version);
  if (!shape) throw new Error(`${version} is not an older version`);
  return sectionSchema(shape.names);
}

function sectionSchema(names: Names): JsonObject {
  const properties = Object.entries(names).map(([name, below]) => [
    name,
    Array.isArray(below.types) ? valueSchema(below as Rule) : sectionSchema(below as Names),
  ]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

function valueSchema({ types, entries, allowed, min, max }: Rule): JsonObject {
  const isList = types[0] === 'array';
  return {
    type: typeOf(types),
    ...(entries ? { [isList ? 'items' : 'additionalProperties']: { type: typeOf(entries) } } : {}),
    ...(allowed ? { enum: [...allowed] } : {}),
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
  };
}

function typeOf(types: readonly string[]) {
  return types.length === 1 ? (types[0] ?? '') : [...types];
}
