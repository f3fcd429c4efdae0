import type { FastifyInstance } from 'fastify';
import { TEXT_TYPE, TEXTS } from '../wire-texts.ts';

/** `GET /v1/about`: a sentence for people. */
export function aboutRoutes(app: FastifyInstance): void {
  app.get('/v1/about', (_request, reply) => {
    reply.type(TEXT_TYPE).send(TEXTS.about);
  });
}
