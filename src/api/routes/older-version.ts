import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { ENDPOINTS } from '../endpoints.ts';
import { pathOf } from '../error-handler.ts';
import { documented } from '../route-doc.ts';

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
