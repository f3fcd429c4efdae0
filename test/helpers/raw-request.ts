import { connect } from 'node:net';

export interface RawHead {
  method?: string;
  /** The request target, byte for byte. */
  target: string;
  /** Lines, in this order, in addition to `Host` and `Connection: close`. */
  headers?: readonly string[];
  version?: string;
  body?: Buffer | string;
}

/** The bytes of a request that no client library would send. */
export function rawRequest({ method = 'POST', target, headers = [], version = '1.1', body = '' }: RawHead): Buffer {
  const lines = [`${method} ${target} HTTP/${version}`, 'Host: localhost', 'Connection: close', ...headers, '', ''];
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), Buffer.from(body)]);
}

/** Sends bytes to a socket and returns everything received until it closes or `limitMs` have passed. */
export function exchange(endpoint: string, bytes: Buffer, limitMs = 20_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(endpoint.replace(/^unix:\/\//, ''));
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => socket.destroy(), limitMs);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString('latin1'));
    });
    // A server that refuses early closes during the upload; what it sent before counts.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') reject(error);
    });
    socket.write(bytes);
  });
}

/** Status of the first response; 0 for none. */
export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1] ?? 0);
}
