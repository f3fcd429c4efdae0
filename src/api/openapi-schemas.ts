import errorSchema from '../../schemas/error.json';
import planSchema from '../../schemas/plan.json';
import settingsSchema from '../../schemas/settings/v19.json';
import statusSchema from '../../schemas/status.json';
import type { JsonSchema, SchemaName } from './route-doc.ts';

/** The documents of `schemas/` that routes refer to, in the form in which one OpenAPI document can hold them all. */
export function componentSchemas(): Record<SchemaName, JsonSchema> {
  return {
    Settings: component('Settings', settingsSchema),
    Status: component('Status', statusSchema),
    Plan: component('Plan', planSchema),
    Error: component('Error', errorSchema),
  };
}

/** Local references are rewritten, because the schema is no longer the root of its document. */
function component(name: SchemaName, schema: object): JsonSchema {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', `"#/components/schemas/${name}/$defs/`);
  const { $schema: _schema, $id: _id, ...rest } = JSON.parse(text);
  return rest;
}
