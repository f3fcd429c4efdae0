import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { schemaOf, withDoc } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

/** A nonce of 16 to 64 bytes in hex. */
const NONCE = /^(?:[0-9a-f]{2}){16,64}$/;
/** Proofs per second that are answered; a tool needs one per request. */
const MAX_PER_SECOND = 500;

/** The port of the proof route. */
export interface ProofPort {
  /** Returns the proof for a nonce, as `src/client/service-proof.ts` checks it. */
  prove(nonce: string): string;
}

/**
 * Registers `GET /v2/proof`, with which a caller verifies that this is the service of its connection file before it sends its password. It requires
 * no credentials, so it reveals only a keyed digest of the nonce, at a limited rate. `now` is in milliseconds.
 */
export function proofRoutes(
  app: FastifyInstance,
  { prove }: ProofPort,
  now: () => number = () => performance.now(),
): void {
  let second = 0;
  let answered = 0;
  const doc = withDoc({
    scope: 'read',
    summary: 'Prove to a caller, without credentials, that this is the service of the connection file',
    description:
      'HMAC-SHA256, keyed with the password of the connection file, of four lines: "rdctl service proof 1", the port, the nonce, and an empty one.',
    open: true,
    query: { nonce: { description: '16 to 64 random bytes as lowercase hexadecimal digits', required: true } },
    replies: {
      200: {
        description: 'the proof',
        body: 'json',
        schema: {
          type: 'object',
          required: ['proof'],
          properties: { proof: { type: 'string', pattern: '^[0-9a-f]{64}$' } },
        },
      },
      400: { description: 'invalid nonce', body: 'json', schema: schemaOf('Error') },
      503: { description: 'too many requests', body: 'json', schema: schemaOf('Error') },
    },
  });
  app.get<{ Querystring: { nonce?: unknown } }>('/v2/proof', doc, (request, reply) => {
    const { nonce } = request.query;
    if (typeof nonce !== 'string' || !NONCE.test(nonce)) {
      throw new RdError('ERR_BODY_INVALID', 'nonce must be 16 to 64 bytes in lowercase hexadecimal digits');
    }
    const present = Math.floor(now() / 1000);
    answered = present === second ? answered + 1 : 1;
    second = present;
    if (answered > MAX_PER_SECOND)
      throw new RdError('ERR_NOT_READY', `more than ${MAX_PER_SECOND} proofs per second were requested`);
    reply.type(JSON_TYPE).send(`${JSON.stringify({ proof: prove(nonce) })}\n`);
  });
}
