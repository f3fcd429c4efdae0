import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { ENDPOINTS } from '../endpoints.ts';
import { pathOf } from '../error-handler.ts';
import { documented } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

const VERSION_0 = ['GET /v0'];
const VERSION_1 = ['GET /v1', ...ENDPOINTS.map(({ method, name }) => `${method} /v1/${name}`)];

/** `GET /`, `/v0`, `/v1`: what there is, as compact JSON in the order of the compatible interface. */
export function listingRoutes(app: FastifyInstance): void {
  list(app, '/', 'List all endpoints', ['GET /', ...VERSION_0, ...VERSION_1]);
  list(app, '/v0', 'List the endpoints of version 0', VERSION_0);
  list(app, '/v1', 'List the endpoints of version 1', VERSION_1);
}

function list(app: FastifyInstance, path: string, summary: string, endpoints: readonly string[]): void {
  const body = Buffer.from(JSON.stringify(endpoints));
  const doc = documented({
    summary,
    description: 'Our own endpoints below /v2 are in GET /v2/openapi.json.',
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

/** `GET /v1/about`: a sentence for people. */
export function aboutRoutes(app: FastifyInstance): void {
  const doc = documented({
    summary: 'What this API is',
    replies: { 200: { description: 'always', body: 'text', example: TEXTS.about } },
  });
  app.get('/v1/about', doc, (_request, reply) => {
    reply.type(TEXT_TYPE).send(TEXTS.about);
  });
}

/** Served below `/v0` like below `/v1`, for tools of the oldest releases. */
const SERVED = new Set(['GET settings', 'PUT settings', 'PUT shutdown']);

/** Endpoints that a `/v0` client may expect there: 400 with the path to use (api facts, 6.3). */
export function olderVersionRoutes(app: FastifyInstance): void {
  for (const { method, name, since } of ENDPOINTS) {
    if (since !== 0 || SERVED.has(`${method} ${name}`)) continue;
    app.route({
      ...documented({
        summary: `Names the path of this endpoint below /v1`,
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
