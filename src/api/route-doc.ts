import type { FastifyInstance } from 'fastify';

/** A JSON Schema (2020-12) as a plain value. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What one answer looks like. `text` and `json` say the media type; an empty answer has `none`. */
export interface ReplyDoc {
  /** When it is given, as a phrase. */
  description: string;
  body: 'text' | 'json' | 'none';
  /** Of the body, where it is JSON (also JSON that is sent as text). */
  schema?: JsonSchema;
  /** What each header beside the usual ones says, by name. */
  headers?: Readonly<Record<string, string>>;
  example?: unknown;
}

/** What a route says about itself; `GET /v2/openapi.json` is made of nothing else. */
export interface RouteDoc {
  /** One sentence without a full stop: what a call does. */
  summary: string;
  /** What a caller has to know beyond that. */
  description?: string;
  query?: Readonly<Record<string, { description: string; required?: boolean }>>;
  /** Request headers that mean something here, by name. */
  headers?: Readonly<Record<string, string>>;
  body?: { description: string; schema: JsonSchema; required: boolean };
  /** By status. Left out, because every route has them: 401, 403 of the guard, 413, and 500 for a bug. */
  replies: Readonly<Record<number, ReplyDoc>>;
  /** Asks for no credentials. Host and Origin are looked at all the same. */
  open?: true;
  /** Answers `/v0` or is otherwise served without being listed. */
  unlisted?: true;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    doc?: RouteDoc;
  }
}

/** A document of `schemas/`, by its name there (`Status`, `Settings`), or any part of the settings (`SettingsPart`). */
export function schemaOf(name: SchemaName): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

export type SchemaName = 'Settings' | 'SettingsPart' | 'Status' | 'Plan' | 'Error';

/** Options of a route that carry its description: `app.get('/v1/about', documented({...}), handler)`. */
export function documented(doc: RouteDoc): { config: { doc: RouteDoc } } {
  return { config: { doc } };
}

/** A route with what it says about itself. */
export interface DescribedRoute {
  /** Upper case. */
  method: string;
  path: string;
  doc: RouteDoc;
}

/**
 * Collects the routes that are registered from here on, in that order. `HEAD` is left out: it comes with every `GET`. The list
 * grows until the app is ready.
 * @throws Error, at the registration, for a route that does not describe itself.
 */
export function describedRoutes(app: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const doc = config?.doc;
    if (doc === undefined) throw new Error(`the route ${[method].flat().join()} ${url} is not documented`);
    for (const name of [method].flat()) if (name !== 'HEAD') routes.push({ method: name, path: url, doc });
  });
  return routes;
}
