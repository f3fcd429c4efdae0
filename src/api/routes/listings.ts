import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { indentedJson } from '../../json.ts';
import { pathOf } from '../error-handler.ts';
import { type DescribedRoute, withDoc } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';
import type { ServiceFacts } from './status.ts';

/** An endpoint of the compatible interface. */
export interface Endpoint {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Path without the version prefix, such as `settings/locked`. */
  name: string;
  /** First version that has the endpoint. With 0, its path under `/v0` returns an error that names the newer path; with 1, it is unknown there. */
  since: 0 | 1;
}

/** All endpoints of version 1, in the order of the listings. */
export const ENDPOINTS: readonly Endpoint[] = [
  { method: 'GET', name: 'about', since: 1 },
  { method: 'GET', name: 'backend_state', since: 1 },
  { method: 'PUT', name: 'backend_state', since: 1 },
  { method: 'GET', name: 'diagnostic_categories', since: 0 },
  { method: 'GET', name: 'diagnostic_checks', since: 0 },
  { method: 'POST', name: 'diagnostic_checks', since: 0 },
  { method: 'GET', name: 'diagnostic_ids', since: 0 },
  { method: 'GET', name: 'extensions', since: 1 },
  { method: 'POST', name: 'extensions/install', since: 1 },
  { method: 'POST', name: 'extensions/uninstall', since: 1 },
  { method: 'PUT', name: 'factory_reset', since: 0 },
  { method: 'PUT', name: 'k8s_reset', since: 0 },
  { method: 'DELETE', name: 'port_forwarding', since: 1 },
  { method: 'POST', name: 'port_forwarding', since: 1 },
  { method: 'PUT', name: 'propose_settings', since: 0 },
  { method: 'GET', name: 'settings', since: 0 },
  { method: 'PUT', name: 'settings', since: 0 },
  { method: 'GET', name: 'settings/locked', since: 0 },
  { method: 'PUT', name: 'shutdown', since: 0 },
  { method: 'POST', name: 'snapshot/restore', since: 0 },
  { method: 'GET', name: 'snapshots', since: 0 },
  { method: 'DELETE', name: 'snapshots', since: 0 },
  { method: 'POST', name: 'snapshots', since: 0 },
  { method: 'POST', name: 'snapshots/cancel', since: 0 },
  { method: 'GET', name: 'transient_settings', since: 0 },
  { method: 'PUT', name: 'transient_settings', since: 0 },
];

const VERSION_0 = ['GET /v0'];
const VERSION_1 = ['GET /v1', ...ENDPOINTS.map(({ method, name }) => `${method} /v1/${name}`)];

/** Registers `GET /`, `/v0` and `/v1`: the endpoints, as compact JSON in the order of the compatible interface. */
export function listingRoutes(app: FastifyInstance): void {
  list(app, '/', 'List all endpoints', ['GET /', ...VERSION_0, ...VERSION_1]);
  list(app, '/v0', 'List the endpoints of version 0', VERSION_0);
  list(app, '/v1', 'List the endpoints of version 1', VERSION_1);
}

function list(app: FastifyInstance, path: string, summary: string, endpoints: readonly string[]): void {
  const body = Buffer.from(JSON.stringify(endpoints));
  const doc = withDoc({
    scope: 'read',
    summary,
    description: 'Endpoints under /v2 are described in GET /v2/openapi.json.',
    replies: {
      200: {
        description: 'always, in the order of the compatible interface',
        body: 'json',
        schema: { type: 'array', items: { type: 'string', pattern: '^(GET|PUT|POST|DELETE) /' } },
        example: endpoints,
      },
    },
  });
  app.get(path, doc, (_request, reply) => {
    reply.type(JSON_TYPE).send(body);
  });
}

/** Registers `GET /v1/about`: a sentence for display. */
export function aboutRoutes(app: FastifyInstance): void {
  const doc = withDoc({
    scope: 'read',
    summary: 'What this API is',
    replies: { 200: { description: 'always', body: 'text', example: TEXTS.about } },
  });
  app.get('/v1/about', doc, (_request, reply) => {
    reply.type(TEXT_TYPE).send(TEXTS.about);
  });
}

/** Endpoints that `/v0` serves exactly like `/v1`, for tools of the oldest releases. */
const SERVED = new Set(['GET settings', 'PUT settings', 'PUT shutdown']);

/** Registers the endpoints that a `/v0` client may expect: 400 with the path to use. */
export function olderVersionRoutes(app: FastifyInstance): void {
  for (const { method, name, since } of ENDPOINTS) {
    if (since !== 0 || SERVED.has(`${method} ${name}`)) continue;
    app.route({
      ...withDoc({
        scope: 'read',
        summary: `Returns the path of this endpoint under /v1`,
        description: 'Nothing is done.',
        unlisted: true,
        replies: {
          400: {
            description: 'always',
            body: 'text',
            example: `Invalid version "/v0" for endpoint "${method} /v0/${name}" - use "/v1/${name}"`,
          },
        },
      }),
      method,
      url: `/v0/${name}`,
      handler: (request) => {
        const path = pathOf(request);
        const [, prefix = '', ...rest] = path.split('/');
        throw new RdError(
          'ERR_BODY_INVALID',
          `Invalid version "/${prefix}" for endpoint "${request.method} ${path}" - use "/v1/${rest.join('/')}"`,
        );
      },
    });
  }
}

/** The facts of this service that its API description contains. */
export interface OpenApiPort {
  about: Pick<ServiceFacts, 'version' | 'port'>;
}

/** Registers `GET /v2/openapi.json`: the description of this API, generated on request. */
export function openApiRoutes(app: FastifyInstance, { about }: OpenApiPort, routes: readonly DescribedRoute[]): void {
  const doc = withDoc({
    scope: 'read',
    summary: 'This description of the API',
    replies: {
      200: {
        description: 'always; OpenAPI 3.1',
        body: 'json',
        schema: {
          type: 'object',
          required: ['openapi', 'info', 'paths'],
          properties: { openapi: { const: '3.1.0' }, info: { type: 'object' }, paths: { type: 'object' } },
        },
      },
    },
  });
  app.get('/v2/openapi.json', doc, async (_request, reply) => {
    const { openApiDocument } = await import('../openapi.ts');
    const document = openApiDocument(routes, about.version, about.port);
    return reply.type(JSON_TYPE).send(indentedJson(document));
  });
}
