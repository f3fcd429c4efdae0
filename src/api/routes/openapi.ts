import type { FastifyInstance } from 'fastify';
import type { ApiContext } from '../context.ts';
import type { DescribedRoute } from '../described-routes.ts';
import { documented } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** `GET /v2/openapi.json`: this API described for programs, made when it is asked for, because hardly anybody does. */
export function openApiRoutes(app: FastifyInstance, { about }: ApiContext, routes: readonly DescribedRoute[]): void {
  const doc = documented({
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
    return reply.type(JSON_TYPE).send(`${JSON.stringify(document, null, 2)}\n`);
  });
}
