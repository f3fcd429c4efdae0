import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { ENDPOINTS } from '../endpoints.ts';
import { documented } from '../route-doc.ts';

/** Parts of the interface that this release does not have, by the first word of their endpoints. */
const PARTS: Readonly<Record<string, string>> = {};

/** Answers 503 with a sentence: such an endpoint is known, and nothing was done. */
export function notReadyRoutes(app: FastifyInstance): void {
  for (const { method, name } of ENDPOINTS) {
    const sentence = PARTS[name.split('/', 1)[0] ?? ''];
    if (sentence === undefined) continue;
    app.route({
      ...documented({
        summary: 'Not there in this release',
        replies: { 503: { description: 'always', body: 'text', example: sentence } },
      }),
      method,
      url: `/v1/${name}`,
      handler: () => {
        throw new RdError('ERR_NOT_READY', sentence);
      },
    });
  }
}
