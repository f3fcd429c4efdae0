import type { FastifyInstance } from 'fastify';
import { documented } from '../route-doc.ts';
import { TEXT_TYPE, TEXTS } from '../wire-texts.ts';

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
