import errorSchema from '../../schemas/error.json';
import planSchema from '../../schemas/plan.json';
import settingsSchema from '../../schemas/settings/v19.json';
import statusSchema from '../../schemas/status.json';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { JsonSchema, SchemaName } from './route-doc.ts';

/** The documents of `schemas/` that routes refer to, in the form in which one OpenAPI document can hold them all. */
export function componentSchemas(): Record<SchemaName, JsonSchema> {
  return {
    Settings: component('Settings', settingsSchema),
    SettingsPart: partOf(component('SettingsPart', settingsSchema)),
    Status: component('Status', statusSchema),
    Plan: component('Plan', planSchema),
    Error: component('Error', errorSchema),
  };
}

/** Local references are rewritten, because the schema is no longer the root of its document. */
function component(name: SchemaName, schema: object): JsonObject {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', `"#/components/schemas/${name}/$defs/`);
  const { $schema: _schema, $id: _id, ...rest } = JSON.parse(text);
  return rest;
}

/** What a write takes of it: nothing is required, names that are no settings do no harm, and `null` removes the entry of a map. */
function partOf(schema: JsonObject): JsonObject {
  const { required: _, additionalProperties: entry, properties, enum: words, ...rest } = schema;
  const synonyms = isObject(schema['x-rd-synonyms']) ? Object.keys(schema['x-rd-synonyms']) : [];
  return {
    ...rest,
    ...(isObject(entry) ? { additionalProperties: { anyOf: [entry, { type: 'null' }] } } : {}),
    ...(isObject(properties) ? { properties: Object.fromEntries(Object.entries(properties).map(partOfMember)) } : {}),
    ...(Array.isArray(words) ? { enum: [...words, ...synonyms] } : {}),
  };
}

function partOfMember([name, schema]: [string, JsonValue]): [string, JsonValue] {
  return [name, isObject(schema) ? partOf(schema) : schema];
}
