import type { FastifyInstance } from 'fastify';
import type { ApiContext } from '../context.ts';
import { documented } from '../route-doc.ts';
import { TEXT_TYPE, TEXTS } from '../wire-texts.ts';

/** `PUT /v1/shutdown`: answers as soon as the stop is known of, so that who is answered can start the next service; then everything stops in order. */
export function shutdownRoutes(app: FastifyInstance, { requestStop, log }: ApiContext): void {
  for (const path of ['/v1/shutdown', '/v0/shutdown']) {
    app.put(path, {
      ...documented({
        summary: 'Stop the backend and the service',
        ...(path.startsWith('/v0/') ? { unlisted: true as const } : {}),
        replies: { 202: { description: 'always, before anything has stopped', body: 'text', example: TEXTS.shutdown } },
      }),
      handler: async (_request, reply) => {
        log('info', 'shutdown requested over the API');
        await requestStop('a client asked for it');
        return reply.code(202).header('Connection', 'close').type(TEXT_TYPE).send(TEXTS.shutdown);
      },
    });
  }
}
