import type { ClientRequest, IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { PRODUCT } from '../../product.ts';
import { MAX_MANIFEST } from './learned-digests.ts';

/**
 * A refusal in the error format of the registry API. Some clients display the message in its body, others the reason phrase, which is all
 * that a response to `HEAD` has.
 */
export function denyRegistry(response: ServerResponse, status: keyof typeof REFUSALS, message: string): void {
  const [code, name] = REFUSALS[status];
  if (response.headersSent) return void response.destroy();
  const phrase = `${name}: ${message.replace(/[^ -~]+/g, ' ')}`;
  const headers = {
    'content-type': 'application/json',
    'docker-distribution-api-version': 'registry/2.0',
    ...(status === 407 ? { 'proxy-authenticate': PROXY_CHALLENGE } : {}),
  };
  response.writeHead(status, phrase, headers);
  response.end(JSON.stringify({ errors: [{ code, message }] }));
}

export const PROXY_CHALLENGE = `Basic realm="${PRODUCT.name}"`;

const REFUSALS = {
  400: ['UNSUPPORTED', 'Bad Request'],
  403: ['DENIED', 'Forbidden'],
  407: ['UNAUTHORIZED', 'Proxy Authentication Required'],
  502: ['UNAVAILABLE', 'Bad Gateway'],
} as const;

/** Hop-by-hop headers. */
const HOP_BY_HOP_HEADERS = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Headers of registry clients and build downloads. Some servers take the path or the method from other headers. */
const REQUEST_HEADERS =
  /^(?:accept|accept-.*|authorization|cache-control|content-.*|docker-.*|git-.*|if-.*|oci-.*|pragma|range|referer|user-agent|x-meta-.*)$/;

export function requestHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => REQUEST_HEADERS.test(name)));
}

function answerHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP_HEADERS.test(name)));
}

export interface Relay {
  /** Called before the response is forwarded, with the body of a 200. Only for bodies known to be short. */
  read?(body: string, headers: IncomingHttpHeaders): void;
  /** Rewrites a `Location` for the client. */
  location?(value: string): string;
}

/** Forwards the response of a registry. Rejects when there is none. */
export function relay(call: ClientRequest, response: ServerResponse, { read, location }: Relay): Promise<void> {
  return new Promise((resolve, reject) => {
    response.once('close', () => call.destroy());
    call.on('error', reject);
    call.on('response', (answer) => {
      const headers = answerHeaders(answer.headers);
      if (location && answer.headers.location !== undefined) headers.location = location(answer.headers.location);
      const status = answer.statusCode ?? 502;
      answer.on('error', reject);
      if (!read || status !== 200) {
        response.writeHead(status, headers);
        answer.pipe(response).on('finish', resolve);
        return;
      }
      const chunks: Buffer[] = [];
      let size = 0;
      answer.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_MANIFEST) answer.destroy(new Error(`the manifest is longer than ${MAX_MANIFEST} bytes`));
        else chunks.push(chunk);
      });
      answer.on('end', () => {
        const body = Buffer.concat(chunks);
        read(body.toString('utf8'), answer.headers);
        response.writeHead(status, headers);
        response.end(body, resolve);
      });
    });
  });
}
