import type { FastifyInstance } from 'fastify';
import { ENDPOINTS } from '../endpoints.ts';
import { documented } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

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
