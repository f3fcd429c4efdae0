import { connect } from 'node:net';
import type { Connection } from '../../src/client/connection.ts';

/** A request as it goes over the wire; nothing is added to `target` and nothing is escaped. */
export interface RawRequest {
  method: string;
  target: string;
  /** `undefined` omits a header that is otherwise sent: Host, Authorization, Connection, Content-Length. */
  headers?: Record<string, string | undefined>;
  body?: string | Buffer;
}

export interface RawReply {
  status: number;
  /** Statuses of earlier interim responses. */
  interim?: number[];
  /** The reason phrase. */
  reason: string;
  /** By name in lower case. */
  headers: Record<string, string>;
  body: string;
}

/** Milliseconds after which an exchange counts as hanging. */
const PATIENCE = 30_000;

/** Sends a request over plain sockets, so that no client of ours or of Node normalizes it. */
export async function exchange(to: Connection, request: RawRequest): Promise<RawReply> {
  const body = Buffer.from(request.body ?? '');
  return parse(await send(to.port, bytesOf(to, request, body)));
}

/** The request as it goes over the wire. */
export function bytesOf(to: Connection, request: RawRequest, body = Buffer.from(request.body ?? '')): Buffer {
  const headers = {
    Host: `127.0.0.1:${to.port}`,
    Authorization: `Basic ${Buffer.from(`${to.user}:${to.password}`).toString('base64')}`,
    Connection: 'close',
    ...(request.body === undefined ? {} : { 'Content-Length': String(body.length) }),
    ...request.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  const head = `${[`${request.method} ${request.target} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

/** Everything received until the other side closes. `end`: also ends this side. */
export function send(port: number, bytes: Buffer, end = false): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: end });
    const parts: Buffer[] = [];
    const done = () => {
      clearTimeout(limit);
      resolve(Buffer.concat(parts));
    };
    const limit = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no answer within ${PATIENCE / 1000} s to ${bytes.subarray(0, 200).toString('latin1')}`));
    }, PATIENCE);
    socket.on('data', (part) => parts.push(part));
    // A server may refuse and close during a large upload; what it sent before counts.
    socket.once('error', done);
    socket.once('close', done);
    socket.once('end', () => socket.end());
    if (end) socket.end(bytes);
    else socket.write(bytes);
  });
}

/** @throws Error for anything other than an HTTP response. */
export function parse(bytes: Buffer, interim: number[] = []): RawReply {
  const end = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = bytes
    .subarray(0, end < 0 ? 0 : end)
    .toString('latin1')
    .split('\r\n');
  const match = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(statusLine);
  if (!match) throw new Error(`not an HTTP answer: ${JSON.stringify(bytes.subarray(0, 200).toString('latin1'))}`);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  if (match[1]?.startsWith('1')) return parse(bytes.subarray(end + 4), [...interim, Number(match[1])]);
  const body = bytes.subarray(end + 4);
  return {
    status: Number(match[1]),
    interim,
    reason: match[2] ?? '',
    headers,
    body: (headers['transfer-encoding'] === 'chunked' ? unchunked(body) : body).toString(),
  };
}

function unchunked(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16);
    if (line < 0 || !(size > 0)) return Buffer.concat(parts);
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}
