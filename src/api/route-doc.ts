import type { FastifyInstance } from 'fastify';
import type { TokenScope } from '../state/tokens.ts';
import type { DocumentName } from './document-schemas.ts';
import type { TokenHolder } from './token-guard.ts';

/** A JSON Schema (2020-12) as a plain value. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One response. `text` and `json` are the media type; `none`: it has no body. */
export interface ReplyDoc {
  /** When the response is sent, as a phrase. */
  description: string;
  body: 'text' | 'json' | 'none';
  /** Media type of the response, if it is not the usual one. */
  type?: string;
  /** Schema of the body, if it is JSON or JSON sent as text. */
  schema?: JsonSchema;
  /** Meaning of the special headers, by name. */
  headers?: Readonly<Record<string, string>>;
  example?: unknown;
}

/** Documentation of a route, the source of `GET /v2/openapi.json`. */
export interface RouteDoc {
  /** The effect of a call, as a phrase. */
  summary: string;
  /** Details beyond the summary. */
  description?: string;
  query?: Readonly<Record<string, { description: string; required?: boolean }>>;
  /** Meaning of the request headers that this route reads, by name. */
  headers?: Readonly<Record<string, string>>;
  body?: { description: string; schema: JsonSchema; required: boolean };
  /** Responses by status, without those that every route has: 401 and 403 of the guard, 413, and 500 for a bug. */
  replies: Readonly<Record<number, ReplyDoc>>;
  /** Set for a route that requires no credentials. Host and Origin are still checked. */
  open?: true;
  /**
   * The least token scope that may call the route: `read` reveals no secret, `plan` also computes plans, `write` changes the desktop. `closed`
   * refuses all tokens; it such calls remove the installation.
   */
  scope: TokenScope | 'closed';
  /** Set for a route that is left out of the description, such as a path under `/v0`. */
  unlisted?: true;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The token of the request; absent for full credentials and open routes. */
    token: TokenHolder | undefined;
  }
  interface FastifyContextConfig {
    doc?: RouteDoc;
  }
}

/** Returns a document of `schemas/` by its name there (`Status`, `Settings`), or a partial settings document (`SettingsPart`). */
export function schemaOf(name: SchemaName): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

export type SchemaName = DocumentName | 'SettingsPart';

/** Returns route options that carry the documentation: `app.get('/v1/about', withDoc({...}), handler)`. */
export function withDoc(doc: RouteDoc): { config: { doc: RouteDoc } } {
  return { config: { doc } };
}

/** A route with its documentation. */
export interface DescribedRoute {
  /** HTTP method in upper case. */
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
