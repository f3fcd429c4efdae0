import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import { request as send } from 'node:http';
import { RdError } from '../errors.ts';
import { systemCode } from '../storage/io-error.ts';
import type { Connection } from './connection.ts';
import { addressOf, requestText } from './request-text.ts';
import { staleAdvice } from './stale-file.ts';

/** One request. `path` is sent as it is; `body` is sent byte for byte as JSON. */
export interface HttpRequest {
  method: string;
  path: string;
  body?: string | Buffer;
  headers?: Readonly<Record<string, string>>;
  /** Milliseconds until the answer must be there as a whole; `answerLimit` unless told. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Takes the body of an answer 200 as it arrives, which then is empty; the time ends with its head. */
  onPart?(part: Buffer): void;
}

/** An answer of any status. Header names are in lower case. */
export interface HttpResponse {
  status: number;
  /** Reason phrase: `Bad Request`. */
  statusText: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Carries one request to a service; tests put an in-process one here. */
export type Transport = (connection: Connection, request: HttpRequest) => Promise<HttpResponse>;

/** Larger answers are refused: nothing of the API comes near this. */
const ANSWER_LIMIT = 64 * 1024 * 1024;
/** Milliseconds for an answer: one that is only read, and one that may have to wait for other writes. */
const READ_LIMIT = 10_000;
const WRITE_LIMIT = 60_000;
/** Milliseconds for a connection to be accepted; on this machine that takes none. */
const CONNECT_LIMIT = 5_000;

/** How long an answer may take when nobody says otherwise. */
export function answerLimit({ method }: Pick<HttpRequest, 'method'>): number {
  return method === 'GET' || method === 'HEAD' ? READ_LIMIT : WRITE_LIMIT;
}

/** A transport on which no request outlives what `leftMs` says is left of the time of a command. */
export function withinTime(leftMs: () => number, transport: Transport = httpTransport): Transport {
  return (connection, request) => {
    const timeoutMs = Math.max(1, Math.min(request.timeoutMs ?? answerLimit(request), leftMs()));
    return transport(connection, { ...request, timeoutMs });
  };
}

/**
 * Sends over HTTP, always directly: an agent of our own per request ignores proxy variables, which must not get to see the
 * password. Nothing is sent before it is shown who listens; see `Reached`.
 * @throws RdError `ERR_NOT_RUNNING` when nothing listens, or another than the one who is meant; `ERR_DEADLINE` when nothing comes in
 * time, `ERR_CANCELLED` by the signal, `ERR_CONNECTION` for every other failure of the transport.
 */
export const httpTransport: Transport = async (connection, request) => {
  const { reached } = connection;
  if (reached.by === 'word') return exchange(connection, request, { agent: false });
  if (reached.by === 'socket') return exchange(connection, request, { agent: false, socketPath: reached.path });
  return assured(connection, request);
};

/** What shows who listens counts in the time of the request. */
async function assured(connection: Connection, request: HttpRequest): Promise<HttpResponse> {
  const { timeoutMs = answerLimit(request), signal } = request;
  const { assuredSocket } = await import('./assurance.ts');
  const begun = performance.now();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new TimeoutError('did not answer', timeoutMs)), timeoutMs);
  try {
    const socket = await assuredSocket(connection, {
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    });
    clearTimeout(timer);
    const left = Math.max(1, timeoutMs - (performance.now() - begun));
    return await exchange(connection, { ...request, timeoutMs: left }, { createConnection: () => socket });
  } catch (cause) {
    if (cause instanceof RdError) throw cause;
    throw transportError(connection, request, cause);
  } finally {
    clearTimeout(timer);
  }
}

/** `way`: how it gets there, in the words of Node. */
const exchange = (connection: Connection, request: HttpRequest, way: RequestOptions): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    let connecting: NodeJS.Timeout | undefined;
    const settled = () => {
      clearTimeout(timer);
      clearTimeout(connecting);
    };
    const fail = (cause: unknown) => {
      settled();
      reject(transportError(connection, request, cause));
    };
    try {
      const outgoing = send(
        {
          host: connection.host,
          port: connection.port,
          method: request.method,
          path: request.path,
          headers: requestHeaders(connection, request),
          ...way,
          ...(request.signal ? { signal: request.signal } : {}),
        },
        (incoming) => {
          const parts: Buffer[] = [];
          let size = 0;
          const onPart = incoming.statusCode === 200 ? request.onPart : undefined;
          if (onPart) settled();
          incoming.on('data', (part: Buffer) => {
            if (onPart) return passOn(onPart, part, incoming);
            size += part.length;
            if (size > ANSWER_LIMIT) incoming.destroy(new Error(`the answer exceeds ${ANSWER_LIMIT} bytes`));
            else parts.push(part);
          });
          incoming.on('error', (cause) =>
            fail(incoming.complete || size > ANSWER_LIMIT ? cause : new CutOffError(cause)),
          );
          incoming.on('end', () => {
            settled();
            resolve({
              status: incoming.statusCode ?? 0,
              statusText: incoming.statusMessage ?? '',
              headers: incoming.headers,
              body: Buffer.concat(parts),
            });
          });
        },
      );
      // After an early answer (a body that is too large) the rest of the writing may fail; the answer counts then.
      outgoing.on('error', fail);
      const { timeoutMs = answerLimit(request) } = request;
      const connectMs = Math.min(CONNECT_LIMIT, timeoutMs);
      timer = setTimeout(() => outgoing.destroy(new TimeoutError('did not answer', timeoutMs)), timeoutMs);
      outgoing.once('socket', (socket) => {
        if (!socket.connecting) return;
        const error = new TimeoutError('did not accept the connection', connectMs);
        connecting = setTimeout(() => outgoing.destroy(error), connectMs);
        socket.once('connect', () => clearTimeout(connecting));
      });
      outgoing.end(request.body);
    } catch (cause) {
      // Characters that a path or header cannot hold, a port out of range.
      fail(cause);
    }
  });

/** What the reader of a stream throws ends the stream, and is what the caller is told. */
function passOn(onPart: (part: Buffer) => void, part: Buffer, incoming: IncomingMessage): void {
  try {
    onPart(part);
  } catch (error) {
    incoming.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

class TimeoutError extends Error {
  readonly limitMs: number;
  constructor(what: string, limitMs: number) {
    super(what);
    this.limitMs = limitMs;
  }
}

class CutOffError extends Error {
  constructor(cause: unknown) {
    super('unexpected EOF', { cause });
  }
}

/** The headers of the compatible tool, which some services look at. */
export function requestHeaders(connection: Connection, request: HttpRequest): Record<string, string | number> {
  const credentials = Buffer.from(`${connection.user}:${connection.password}`).toString('base64');
  return {
    Authorization: `Basic ${credentials}`,
    'Content-Type': request.body === undefined ? 'text/plain' : 'application/json',
    ...(request.body === undefined ? {} : { 'Content-Length': Buffer.byteLength(request.body) }),
    ...request.headers,
  };
}

function transportError(connection: Connection, request: HttpRequest, cause: unknown): RdError {
  const where = addressOf(connection);
  const code = systemCode(cause) ?? '';
  if (request.signal?.aborted) return new RdError('ERR_CANCELLED', 'the request was cancelled', { cause });
  if (cause instanceof TimeoutError) {
    return new RdError('ERR_DEADLINE', `${where}${fromText(connection)} ${cause.message} within ${limitText(cause)}`, {
      cause,
      advice: 'The service may be busy, or another program listens there: see which one, and end it or try again.',
    });
  }
  // A socket that was there at the first look may be gone at the second.
  if (code === 'ECONNREFUSED' || (code === 'ENOENT' && connection.reached.by === 'socket')) {
    return new RdError('ERR_NOT_RUNNING', `connection refused: no service listens on ${where}`, {
      cause,
      advice: staleAdvice(connection),
    });
  }
  if (code.startsWith('HPE_')) return notOurService(connection, 'its answer is not HTTP', cause);
  const text = cause instanceof CutOffError ? cause.message : requestText(connection, request, cause);
  return new RdError('ERR_CONNECTION', text, {
    cause,
    advice: 'Check --host and --port, and that the service is running.',
  });
}

/** No service answers with one; another program often does. */
export function isWebPage({ headers, body }: Pick<HttpResponse, 'headers' | 'body'>): boolean {
  const type = String(headers['content-type'] ?? '');
  return (
    type.startsWith('text/html') || (!type.startsWith('application/json') && /^\s*</.test(body.toString('utf8', 0, 64)))
  );
}

function limitText({ limitMs }: TimeoutError): string {
  return limitMs < 1000 ? `${Math.ceil(limitMs)} ms` : `${Math.round(limitMs / 100) / 10} s`;
}

function fromText({ file }: Connection): string {
  return file === undefined ? '' : ` (the address in ${file})`;
}

/** Something answers on the port, and it is not a service that we can talk to. */
export function notOurService(connection: Connection, detail: string, cause?: unknown): RdError {
  const from = connection.file === undefined ? 'the connection flags' : connection.file;
  return new RdError(
    'ERR_CONNECTION',
    `another program answers on ${connection.host}:${connection.port}, the address in ${from}: ${detail}`,
    {
      ...(cause === undefined ? {} : { cause }),
      advice: 'If the service is not running, start it with `rdctl start`; it takes the next free port.',
    },
  );
}
