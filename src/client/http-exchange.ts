import { HTTPParser } from 'http-parser-js';
import type { Wire } from './wire.ts';

// HTTP over one connection. `node:http` brings a server, agents and upgrades along: loading it takes longer than everything else
// that a short command does.

/** A request to be sent. `path` and `body` are sent unchanged. */
export interface OutgoingRequest {
  method: string;
  path: string;
  headers: Readonly<Record<string, string | number>>;
  body?: string | Buffer | undefined;
}

/** The head of a response. Header names are in lower case; values of a repeated header are joined by commas. */
export interface ResponseHead {
  status: number;
  /** Reason phrase, such as `Bad Request`. */
  statusText: string;
  headers: Readonly<Record<string, string | undefined>>;
}

export interface ResponseReader {
  onHead?(head: ResponseHead): void;
  /** Receives the body in parts. An error that it throws ends the exchange, and is passed on. */
  onBody(part: Buffer): void;
}

/** The peer sent something other than HTTP. */
export class ProtocolError extends Error {}

/** The connection ended in the middle of a response. */
export class CutOffError extends Error {
  constructor() {
    super('unexpected EOF');
  }
}

/** Methods whose requests have no body unless one is given (RFC 9110, 9.3). */
const BODILESS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'];
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PATH = /^[\x21-\x7e\x80-\xff]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Sends one request over a connection, which may still be opening, and reads the response to its end. The connection stays open.
 * @returns the head, and whether the connection can be used again.
 * @throws TypeError for a request that cannot be written, before anything is sent; `ProtocolError`, `CutOffError`, and the errors of the connection:
 * `ECONNRESET` where it ends before a response.
 */
export function exchangeOver(
  wire: Wire,
  request: OutgoingRequest,
  { onHead, onBody }: ResponseReader,
): Promise<{ head: ResponseHead; reusable: boolean }> {
  return new Promise((resolve, reject) => {
    const parser = new HTTPParser(HTTPParser.RESPONSE);
    let head: ResponseHead | undefined;
    let reusable = false;
    let isInterim = false;
    let received = 0;

    function over(): void {
      wire.read(undefined);
    }
    function fail(error: unknown): void {
      over();
      reject(error);
    }
    function read(data: Buffer): void {
      received += data.length;
      try {
        const result = parser.execute(data);
        if (result instanceof Error) fail(new ProtocolError(result.message, { cause: result }));
      } catch (error) {
        fail(error);
      }
    }
    function ended(): void {
      // The end of the connection completes some responses.
      if (!parser.finish() && head) return;
      if (head) fail(new CutOffError());
      else if (received > 0) fail(new ProtocolError('it ended within its first lines'));
      else fail(hangUp());
    }

    parser[HTTPParser.kOnHeadersComplete] = (info) => {
      isInterim = info.statusCode < 200;
      if (isInterim) return undefined;
      head = { status: info.statusCode, statusText: info.statusMessage, headers: named(info.headers) };
      reusable = info.shouldKeepAlive;
      onHead?.(head);
      return request.method === 'HEAD' ? 1 : undefined;
    };
    parser[HTTPParser.kOnBody] = (data, offset, length) => onBody(data.subarray(offset, offset + length));
    parser[HTTPParser.kOnMessageComplete] = () => {
      if (isInterim || !head) return;
      over();
      resolve({ head, reusable });
    };
    const text = headText(request);
    // A closed connection calls no reader any more. It may have failed at once, and reports that late or never.
    if (wire.closed) throw wire.failure ?? hangUp();
    wire.read({ onData: read, onEnd: ended, onError: fail });
    wire.write(text, request.body);
  });
}

function hangUp(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
}

/** Formats the head. Its parts are checked, because a line break in one would be a second request. */
function headText({ method, path, headers, body }: OutgoingRequest): string {
  if (!TOKEN.test(method)) throw new TypeError(`the method ${JSON.stringify(method)} is not valid`);
  if (!PATH.test(path)) throw new TypeError(`the path ${JSON.stringify(path)} has characters that must be escaped`);
  const lines = [`${method} ${path} HTTP/1.1`];
  for (const [name, value] of Object.entries(headers)) {
    if (!TOKEN.test(name) || !VALUE.test(`${value}`)) {
      throw new TypeError(`the header ${JSON.stringify(name)} has characters that are not valid`);
    }
    lines.push(`${name}: ${value}`);
  }
  if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  else if (!BODILESS.includes(method)) lines.push('Content-Length: 0');
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function named(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    const before = headers[name];
    headers[name] = before === undefined ? (raw[at + 1] ?? '') : `${before}, ${raw[at + 1]}`;
  }
  return headers;
}
