import { defined, isObject, type JsonObject, type JsonValue } from '../json.ts';
import { COMPATIBLE, PRODUCT } from '../product.ts';
import { documentComponents } from './document-schemas.ts';
import {
  type DescribedRoute,
  type JsonSchema,
  type ReplyDoc,
  type RouteDoc,
  type SchemaName,
  schemaOf,
} from './route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from './wire-texts.ts';

interface Media {
  schema: JsonSchema;
  example?: unknown;
}

interface OpenApiReply {
  description: string;
  headers?: Record<string, { description: string; schema: JsonSchema }>;
  content?: Record<string, Media>;
}

interface OpenApiParameter {
  name: string;
  in: 'query' | 'header';
  description: string;
  required?: true;
  schema: JsonSchema;
}

export interface OpenApiOperation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  security?: Record<string, string[]>[];
  parameters?: OpenApiParameter[];
  requestBody?: { description: string; required: boolean; content: Record<string, Media> };
  responses: Record<string, OpenApiReply>;
}

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: { title: string; version: string; summary: string; description: string };
  servers: { url: string; description: string }[];
  security: Record<string, string[]>[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, JsonSchema> };
}

const TEXT: JsonSchema = { type: 'string' };
/** The documented media type of bodies, which are read as JSON whatever type they are sent with. */
const BODY_TYPE = 'application/json';

/** Builds the OpenAPI 3.1 document of these routes. `port` is that of the service. */
export function openApiDocument(routes: readonly DescribedRoute[], version: string, port?: number): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {};
  for (const { method, path, doc } of routes) {
    const item = paths[path] ?? {};
    item[method.toLowerCase()] = operation(method, path, doc);
    paths[path] = item;
  }
  return {
    openapi: '3.1.0',
    info: {
      title: `${PRODUCT.name} management API`,
      version,
      summary: 'Local control of a container desktop',
      description: `Paths under /v1 (and some under /v0) are compatible with ${COMPATIBLE.productName}; paths under /v2 are our own. Bodies are read as UTF-8 JSON regardless of their media type.`,
    },
    servers: [{ url: `http://127.0.0.1:${port ?? PRODUCT.defaultPort}`, description: 'This computer only' }],
    security: [{ basic: [] }],
    tags: [
      { name: 'compatible', description: `The interface of ${COMPATIBLE.productName}` },
      { name: 'older', description: 'Paths of its oldest releases, unlisted' },
      { name: 'own', description: 'Endpoints that interface does not have' },
    ],
    paths,
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic', description: 'User and password from the connection file' },
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A token of `rdctl token create`, with the scope that the operation lists: `read`, `plan` or `write`. Also accepted as the password of the user `token`. Tokens see no secrets.',
        },
      },
    },
  };
}

function operation(method: string, path: string, doc: RouteDoc): OpenApiOperation {
  const parameters = parametersOf(doc);
  const { 401: unauthorized, ...usual } = usualReplies(method, path);
  const replies = { ...(doc.open ? {} : { 401: unauthorized }), ...usual, ...doc.replies };
  return {
    operationId: operationId(method, path),
    summary: doc.summary,
    ...defined({ description: doc.description }),
    tags: [tagOf(path)],
    ...(doc.open ? { security: [] } : {}),
    ...(doc.open || doc.scope === 'closed' ? {} : { security: [{ basic: [] }, { token: [doc.scope] }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(doc.body === undefined
      ? {}
      : {
          requestBody: {
            description: doc.body.description,
            required: doc.body.required,
            content: { [BODY_TYPE]: { schema: doc.body.schema } },
          },
        }),
    responses: Object.fromEntries(Object.entries(replies).map(([status, reply]) => [status, replyOf(reply)])),
  };
}

/** `PUT /v1/settings/locked` → `put_v1_settings_locked`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return [method.toLowerCase(), ...(words.length === 0 ? ['root'] : words)].join('_');
}

function tagOf(path: string): string {
  if (path.startsWith('/v2/')) return 'own';
  return path.startsWith('/v0/') ? 'older' : 'compatible';
}

function parametersOf({ query = {}, headers = {} }: RouteDoc): OpenApiParameter[] {
  return [
    ...Object.entries(query).map(
      ([name, { description, required }]): OpenApiParameter => ({
        name,
        in: 'query',
        description,
        ...(required ? { required } : {}),
        schema: TEXT,
      }),
    ),
    ...Object.entries(headers).map(
      ([name, description]): OpenApiParameter => ({ name, in: 'header', description, schema: TEXT }),
    ),
  ];
}

function replyOf({ description, body, type, schema, headers, example }: ReplyDoc): OpenApiReply {
  const media = { ...defined({ example }) };
  return {
    description,
    ...(headers === undefined
      ? {}
      : {
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, meaning]) => [name, { description: meaning, schema: TEXT }]),
          ),
        }),
    ...(body === 'none'
      ? {}
      : {
          content: {
            [type ?? (body === 'json' ? JSON_TYPE : TEXT_TYPE)]:
              body === 'json' ? { schema: schema ?? {}, ...media } : { schema: textSchema(schema), ...media },
          },
        }),
  };
}

/** The schema of JSON that is sent as text: a string, described by its content. */
function textSchema(schema: JsonSchema | undefined): JsonSchema {
  return schema === undefined ? TEXT : { ...TEXT, contentMediaType: 'application/json', contentSchema: schema };
}

/** The responses of the guard, the body limit and the error handler, which every route can send. */
function usualReplies(method: string, path: string): Record<number, ReplyDoc> & { 401: ReplyDoc } {
  const refusal = (description: string, example?: JsonValue): ReplyDoc =>
    path.startsWith('/v2/')
      ? { description, body: 'json', schema: schemaOf('Error') }
      : { description, body: 'text', ...defined({ example }) };
  return {
    401: refusal('missing or invalid credentials', TEXTS.unauthorized),
    403: refusal('a Host or Origin header that is not allowed, or a token without the scope'),
    ...(method === 'GET' ? {} : { 413: refusal('a body larger than 4 MiB', TEXTS.bodyTooLong) }),
    500: refusal('an internal error, or a disk that cannot be written', TEXTS.internal),
  };
}

/** Returns the documents of `schemas/` that routes refer to, as components of one OpenAPI document. */
function componentSchemas(): Record<SchemaName, JsonSchema> {
  const documents = documentComponents();
  return { ...documents, SettingsPart: partOf(documents.Settings) };
}

/** Derives the schema of a write: nothing is required, unknown names are allowed, and `null` removes a map entry. */
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
