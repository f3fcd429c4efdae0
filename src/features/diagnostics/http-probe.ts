import { request as plainRequest } from 'node:http';
import { PRODUCT } from '../../product.ts';

/** The response. */
export interface ProbeReply {
  status: number;
  /** The Date header in milliseconds since the epoch, in whole seconds. */
  serverTime?: number;
  body: string;
}

/** Maximum size of a response body in bytes. */
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Sends a request without a proxy and without following redirects.
 * @param place a URL, or the socket and path of an engine.
 * @throws the connection error, or the reason of the signal.
 */
export async function probe(
  method: 'HEAD' | 'GET',
  place: string | { socket: string; path: string },
  signal: AbortSignal,
): Promise<ProbeReply> {
  const url = new URL(typeof place === 'string' ? place : `http://localhost${place.path}`);
  const request = url.protocol === 'https:' ? (await import('node:https')).request : plainRequest;
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method,
        signal,
        agent: false,
        headers: { 'User-Agent': `${PRODUCT.name}/${PRODUCT.version}` },
        ...(typeof place === 'string' ? {} : { socketPath: place.socket }),
      },
      (answer) => {
        let body = '';
        answer.setEncoding('utf8');
        answer.on('data', (part: string) => {
          body += part;
          if (body.length > MAX_BODY_BYTES)
            answer.destroy(new Error(`the answer has more than ${MAX_BODY_BYTES} bytes`));
        });
        answer.on('error', reject);
        answer.once('end', () => {
          const serverTime = Date.parse(answer.headers.date ?? '');
          resolve({ status: answer.statusCode ?? 0, body, ...(Number.isNaN(serverTime) ? {} : { serverTime }) });
        });
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}
