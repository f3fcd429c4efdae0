import applySchema from '../../schemas/apply.json';
import errorSchema from '../../schemas/error.json';
import eventSchema from '../../schemas/event.json';
import historySchema from '../../schemas/history.json';
import keptSchema from '../../schemas/kept.json';
import planSchema from '../../schemas/plan.json';
import settingsSchema from '../../schemas/settings/v19.json';
import statusSchema from '../../schemas/status.json';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';

/** The documents of `schemas/`, by the name that the OpenAPI document gives them. */
const DOCUMENTS = {
  Apply: applySchema,
  Error: errorSchema,
  Event: eventSchema,
  History: historySchema,
  Kept: keptSchema,
  Plan: planSchema,
  Settings: settingsSchema,
  Status: statusSchema,
} as const satisfies Record<string, object>;

export type DocumentName = keyof typeof DOCUMENTS;

/** Returns the documents as components of an OpenAPI document, with references between them. */
export function documentComponents(): Record<DocumentName, JsonObject> {
  const entries = Object.entries(DOCUMENTS).map(([name, schema]): [string, JsonObject] => {
    const text = JSON.stringify(schema)
      .replaceAll('"#/$defs/', `"#/components/schemas/${name}/$defs/`)
      .replaceAll(/"urn:rdctl:(\w+)#\//g, (_, other) => `"#/components/schemas/${nameOf(other)}/`);
    const { $schema: _schema, $id: _id, ...rest } = withoutTypes(JSON.parse(text));
    return [name, rest];
  });
  return Object.fromEntries(entries) as Record<DocumentName, JsonObject>;
}

/** Returns a definition of a document with all of its references inlined, to validate a request's body. */
export function definitionOf(name: DocumentName, definition: string): JsonObject {
  return expandSchema({ $ref: `#/$defs/${definition}` }, name);
}

/** Merges object schemas into one with the members of all. */
export function mergeSchemas(...schemas: readonly JsonObject[]): JsonObject {
  const of = (key: 'required' | 'properties') => schemas.map((schema) => schema[key]);
  return {
    type: 'object',
    additionalProperties: false,
    required: of('required').flatMap((names) => (Array.isArray(names) ? names : [])),
    properties: Object.assign({}, ...of('properties')),
  };
}

function expandSchema(node: JsonObject, name: DocumentName): JsonObject {
  const { $ref: reference, ...own } = node;
  if (typeof reference !== 'string') {
    return Object.fromEntries(Object.entries(withoutType(own)).map(([key, value]) => [key, expandValue(value, name)]));
  }
  const [, other, definition = ''] = /^(?:urn:rdctl:(\w+))?#\/\$defs\/(\w+)$/.exec(reference) ?? [];
  const home = other === undefined ? name : nameOf(other);
  const { $defs: definitions = {} } = DOCUMENTS[home] as { $defs?: JsonObject };
  const found = isObject(definitions) ? definitions[definition] : undefined;
  if (!isObject(found)) throw new Error(`${name}: there is no ${reference}`);
  return { ...expandSchema(found, home), ...withoutType(own) };
}

function expandValue(value: JsonValue, name: DocumentName): JsonValue {
  if (Array.isArray(value)) return value.map((each) => expandValue(each, name));
  return isObject(value) ? expandSchema(value, name) : value;
}

/** `plan` → `Plan` */
function nameOf(schema: string): DocumentName {
  return `${schema.charAt(0).toUpperCase()}${schema.slice(1)}` as DocumentName;
}

/** Removes the keywords that only the type generator reads. */
function withoutType({ 'x-rd-type': _, ...rest }: JsonObject): JsonObject {
  return rest;
}

function withoutTypes(value: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(value), (_, each) => (isObject(each) ? withoutType(each) : each));
}
