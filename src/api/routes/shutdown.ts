import type { FastifyInstance } from 'fastify';
import type { ApiContext } from '../context.ts';
import { documented } from '../route-doc.ts';
import { TEXT_TYPE, TEXTS } from '../wire-texts.ts';

/** `PUT /v1/shutdown`: answers first, then everything stops in order. */
export function shutdownRoutes(app: FastifyInstance, { requestStop, log }: ApiContext): void {
  for (const path of ['/v1/shutdown', '/v0/shutdown']) {
    app.put(path, {
      ...documented({
        summary: 'Stop the backend and the service',
        ...(path.startsWith('/v0/') ? { unlisted: true as const } : {}),
        replies: { 202: { description: 'always, before anything stops', body: 'text', example: TEXTS.shutdown } },
      }),
      onResponse: (_request, _reply, done) => {
        log('info', 'shutdown requested over the API');
        requestStop('a client asked for it');
        done();
      },
      handler: (_request, reply) => {
        reply.code(202).header('Connection', 'close').type(TEXT_TYPE).send(TEXTS.shutdown);
      },
    });
  }
}
