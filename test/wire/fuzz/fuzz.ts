import fc from 'fast-check';
import type { OpenApiDocument } from '../../../src/api/openapi.ts';
import { TEXTS } from '../../../src/api/wire-texts.ts';
import type { Connection } from '../../../src/client/connection.ts';
import { agreementWith } from '../agreement.ts';
import { bytesOf, exchange, parse, send } from '../raw.ts';
import { type FuzzRequest, requestArbitrary } from './request-arbitrary.ts';

export interface FuzzOptions {
  /** Milliseconds after which no further request is sent. */
  limitMs: number;
  requests: number;
}

/** What is answered before any route, to what is no request; an unknown expectation is refused without a body. */
const RUNTIME: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  417: '',
  431: 'Request Header Fields Too Large',
};

/**
 * Sends random requests, one after the other, and holds every answer against the description: no bug shows as 500, no status,
 * media type or body is one that is not described, nothing hangs.
 * @throws Error of fast-check with the seed and the request.
 */
export async function fuzz(to: Connection, { limitMs, requests }: FuzzOptions): Promise<void> {
  const document: OpenApiDocument = JSON.parse(
    (await exchange(to, { method: 'GET', target: '/v2/openapi.json' })).body,
  );
  const agreement = agreementWith(document);

  async function hold(request: FuzzRequest): Promise<void> {
    const bytes = await send(to.port, bytesOf(to, request), request.malformed);
    if (bytes.length === 0) {
      if (request.malformed) return;
      throw new Error('the connection was closed without an answer');
    }
    const reply = parse(bytes);
    // The compatible text of an install whose tag nobody knows is the same, and there a reason comes with it.
    const isExplained = reply.headers['rdctl-reason'] !== undefined;
    if (
      reply.status === 500 &&
      !isExplained &&
      (reply.body === TEXTS.internal || reply.body.includes('ERR_INTERNAL'))
    ) {
      throw new Error('it is answered as a bug');
    }
    if (RUNTIME[reply.status] === reply.body || (request.malformed && reply.status < 500)) return;
    const problems = agreement.reply(request.method, request.target, reply);
    if (problems.length > 0) throw new Error(`${problems.join('; ')}: ${reply.status} ${reply.body.slice(0, 300)}`);
  }

  let last = Promise.resolve();
  const one = (request: FuzzRequest) => {
    last = hold(request);
    return last;
  };
  await fc.assert(fc.asyncProperty(requestArbitrary(), one), {
    numRuns: requests,
    interruptAfterTimeLimit: limitMs,
    // A smaller request on a service that has changed meanwhile would show something else.
    endOnFailure: true,
  });
  // The limit comes in the middle of one, which is answered, and may change something, after that.
  await last;
}
