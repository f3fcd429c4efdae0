import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { ENDPOINTS } from '../endpoints.ts';
import { pathOf } from '../error-handler.ts';

/** Served below `/v0` like below `/v1`, for tools of the oldest releases. */
const SERVED = new Set(['GET settings', 'PUT settings', 'PUT shutdown']);

/** Endpoints that a `/v0` client may expect there: 400 with the path to use (api facts, 6.3). */
export function olderVersionRoutes(app: FastifyInstance): void {
  for (const { method, name, since } of ENDPOINTS) {
    if (since !== 0 || SERVED.has(`${method} ${name}`)) continue;
    app.route({
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
