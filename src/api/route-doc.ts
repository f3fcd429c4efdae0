import type { FastifyInstance } from 'fastify';
import type { TokenScope } from '../state/tokens.ts';
import type { DocumentName } from './document-schemas.ts';
import type { TokenHolder } from './token-guard.ts';

/** A JSON Schema (2020-12) as a plain value. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One response. `text` and `json` are the media type; `none`: it has no body. */
export interface ReplyDoc {
  /** When it is sent, as a phrase. */
  description: string;
  body: 'text' | 'json' | 'none';
  /** Media type, if it is not the usual one. */
  type?: string;
  /** Of the body, where it is JSON (also JSON that is sent as text). */
  schema?: JsonSchema;
  /** Meaning of its special headers, by name. */
  headers?: Readonly<Record<string, string>>;
  example?: unknown;
}

/** The documentation of a route, from which `GET /v2/openapi.json` is made. */
export interface RouteDoc {
  /** What a call does, as a phrase. */
  summary: string;
  /** Further details. */
  description?: string;
  query?: Readonly<Record<string, { description: string; required?: boolean }>>;
  /** Request headers with a meaning here, by name. */
  headers?: Readonly<Record<string, string>>;
  body?: { description: string; schema: JsonSchema; required: boolean };
  /** By status, without those that every route has: 401 and 403 of the guard, 413, and 500 for a bug. */
  replies: Readonly<Record<number, ReplyDoc>>;
  /** Requires no credentials. Host and Origin are still checked. */
  open?: true;
  /**
   * The least scope of a token that may call it: `read` reveals no secret, `plan` also computes what would happen, `write` changes the
   * desktop. `closed` to all tokens is what removes the installation.
   */
  scope: TokenScope | 'closed';
  /** Not listed, such as paths under `/v0`. */
  unlisted?: true;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Absent for full credentials and open routes. */
    token: TokenHolder | undefined;
  }
  interface FastifyContextConfig {
    doc?: RouteDoc;
  }
}

/** A document of `schemas/`, by its name there (`Status`, `Settings`), or any part of the settings (`SettingsPart`). */
export function schemaOf(name: SchemaName): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

export type SchemaName = DocumentName | 'SettingsPart';

/** Route options with the documentation: `app.get('/v1/about', documented({...}), handler)`. */
export function withDoc(doc: RouteDoc): { config: { doc: RouteDoc } } {
  return { config: { doc } };
}

/** A route with its documentation. */
export interface DescribedRoute {
  /** Upper case. */
  method: string;
  path: string;
  doc: RouteDoc;
}

/**
 * Collects the routes registered from now on, in order. `HEAD` is omitted, because every `GET` has it. The list grows
 * until the app is ready.
 * @throws Error when a route without documentation is registered.
 */
export function collectRoutes(app: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const doc = config?.doc;
    if (doc === undefined) throw new Error(`the route ${[method].flat().join()} ${url} is not documented`);
    for (const name of [method].flat()) if (name !== 'HEAD') routes.push({ method: name, path: url, doc });
  });
  return routes;
}
