import type { FastifyInstance } from 'fastify';
import { ENDPOINTS } from '../endpoints.ts';
import { JSON_TYPE } from '../wire-texts.ts';

const VERSION_0 = ['GET /v0'];
const VERSION_1 = ['GET /v1', ...ENDPOINTS.map(({ method, name }) => `${method} /v1/${name}`)];

/** `GET /`, `/v0`, `/v1`: what there is, as compact JSON in the order of the compatible interface. */
export function listingRoutes(app: FastifyInstance): void {
  list(app, '/', ['GET /', ...VERSION_0, ...VERSION_1]);
  list(app, '/v0', VERSION_0);
  list(app, '/v1', VERSION_1);
}

function list(app: FastifyInstance, path: string, endpoints: readonly string[]): void {
  const body = Buffer.from(JSON.stringify(endpoints));
  app.get(path, (_request, reply) => {
    reply.type(JSON_TYPE).send(body);
  });
}
