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

/** Responses that precede any route, to malformed requests; an unknown expectation is refused without a body. */
const RUNTIME: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  417: '',
  431: 'Request Header Fields Too Large',
};

/**
 * Sends random requests one after the other, and checks every response against the description: no 500 from a bug, no undescribed
 * status, media type or body, and no hang.
 * @throws Error of fast-check with the seed and the request.
 */
export async function fuzz(to: Connection, { limitMs, requests }: FuzzOptions): Promise<void> {
  const document: OpenApiDocument = JSON.parse(
    (await exchange(to, { method: 'GET', target: '/v2/openapi.json' })).body,
  );
  const agreement = agreementWith(document);

  async function hold(request: FuzzRequest): Promise<void> {
    const bytes = await send(to.port, bytesOf(to, request), request.malformed);
    // A client that ended its side may get no more than the interim answer to `Expect`.
    if (/^(?:HTTP\/1\.1 100 [^\r]*\r\n\r\n)?$/.test(bytes.toString('latin1'))) {
      if (request.malformed) return;
      throw new Error('the connection was closed without an answer');
    }
    const reply = parse(bytes);
    // The compatible text for an install with an unknown tag is the same, and there a reason follows.
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
    // A smaller request to a service that has changed since would show something else.
    endOnFailure: true,
  });
  // When the limit falls into a request, that one is answered, and may still change something.
  await last;
}
