import { request as plainRequest } from 'node:http';
import { PRODUCT } from '../product.ts';

/** What came back. */
export interface ProbeReply {
  status: number;
  /** Milliseconds since the epoch, of the Date header; whole seconds. */
  serverTime?: number;
  body: string;
}

/** Bytes of an answer that are read; more is an error. */
const MOST = 1024 * 1024;

/**
 * Asks a server, without any proxy and following nothing.
 * @param place an address, or the socket and path of an engine.
 * @throws what the connection failed with, or the reason of the signal.
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
          if (body.length > MOST) answer.destroy(new Error(`the answer has more than ${MOST} bytes`));
        });
        answer.once('error', reject);
        answer.once('end', () => {
          const serverTime = Date.parse(answer.headers.date ?? '');
          resolve({ status: answer.statusCode ?? 0, body, ...(Number.isNaN(serverTime) ? {} : { serverTime }) });
        });
      },
    );
    sent.once('error', reject);
    sent.end();
  });
}
