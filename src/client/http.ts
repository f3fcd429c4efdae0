import { type IncomingMessage, type RequestOptions, request as send } from 'node:http';
import { RdError } from '../errors.ts';
import { systemCode } from '../os/io-error.ts';
import { PRODUCT } from '../product.ts';
import {
  addressOf,
  type Connection,
  type HttpRequest,
  type HttpResponse,
  staleAdvice,
  type Transport,
} from './connection.ts';
import { notOurService, requestText } from './replies.ts';

/** Larger responses are rejected: nothing in the API comes near this. */
const ANSWER_LIMIT = 64 * 1024 * 1024;
/** Milliseconds for a read; writes may have to wait for other writes. */
const READ_LIMIT = 10_000;
const WRITE_LIMIT = 60_000;
/** Milliseconds to connect; locally that is instant. */
const CONNECT_LIMIT = 5_000;

/** The default response time limit. */
export function answerLimit({ method }: Pick<HttpRequest, 'method'>): number {
  return method === 'GET' || method === 'HEAD' ? READ_LIMIT : WRITE_LIMIT;
}

/** A transport on which no request outlives the command's remaining time, `leftMs`. */
export function withinTime(leftMs: () => number, transport: Transport = httpTransport): Transport {
  return (connection, request) => {
    const timeoutMs = Math.max(1, Math.min(request.timeoutMs ?? answerLimit(request), leftMs()));
    return transport(connection, { ...request, timeoutMs });
  };
}

/**
 * Sends over HTTP, always directly: a dedicated agent per request ignores proxy variables, because a proxy would see
 * the password. Nothing is sent before the listener is verified; see `Reached`.
 * @throws RdError `ERR_NOT_RUNNING` when nothing listens, or the wrong program; `ERR_DEADLINE` on timeout,
 * `ERR_CANCELLED` by the signal, `ERR_CONNECTION` for every other transport failure.
 */
export const httpTransport: Transport = async (connection, request) => {
  const { reached } = connection;
  if (reached.by === 'word') return exchange(connection, request, { agent: false });
  if (reached.by === 'socket') return exchange(connection, request, { agent: false, socketPath: reached.path });
  return assured(connection, request);
};

/** Verifying the listener counts toward the request's timeout. */
async function assured(connection: Connection, request: HttpRequest): Promise<HttpResponse> {
  const { timeoutMs = answerLimit(request), signal } = request;
  const { assuredSocket } = await import('./listener.ts');
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

/** `way`: Node's connection options. */
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
            if (onPart) return forwardPart(onPart, part, incoming);
            size += part.length;
            if (size > ANSWER_LIMIT) incoming.destroy(new Error(`the response exceeds ${ANSWER_LIMIT} bytes`));
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
      // After an early response (body too large) the rest of the upload may fail; the response wins.
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
      // Characters that are invalid in a path or header, or a port out of range.
      fail(cause);
    }
  });

/** An error from the stream's reader ends the stream and is passed to the caller. */
function forwardPart(onPart: (part: Buffer) => void, part: Buffer, incoming: IncomingMessage): void {
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

/** The headers that Rancher Desktop's `rdctl` sends; some services check them. */
export function requestHeaders(connection: Connection, request: HttpRequest): Record<string, string | number> {
  const credentials = Buffer.from(`${connection.user}:${connection.password}`).toString('base64');
  return {
    Authorization: `Basic ${credentials}`,
    'User-Agent': `${PRODUCT.name}/${PRODUCT.version}`,
    'Content-Type': request.body === undefined ? 'text/plain' : 'application/json',
    ...(request.body === undefined ? {} : { 'Content-Length': Buffer.byteLength(request.body) }),
    ...request.headers,
  };
}

function transportError(connection: Connection, request: HttpRequest, cause: unknown): RdError {
  const where = addressOf(connection);
  const code = systemCode(cause) ?? '';
  if (request.signal?.aborted) return new RdError('ERR_CANCELLED', 'the request was canceled', { cause });
  if (cause instanceof TimeoutError) {
    return new RdError('ERR_DEADLINE', `${where}${fromText(connection)} ${cause.message} within ${limitText(cause)}`, {
      cause,
      advice: 'The service may be busy, or another program listens there: see which one, and end it or try again.',
    });
  }
  // The socket may have disappeared since it was found.
  if (code === 'ECONNREFUSED' || (code === 'ENOENT' && connection.reached.by === 'socket')) {
    return new RdError('ERR_NOT_RUNNING', `connection refused: no service listens on ${where}`, {
      cause,
      advice: staleAdvice(connection),
    });
  }
  if (code.startsWith('HPE_')) return notOurService(connection, 'its response is not HTTP', cause);
  const text = cause instanceof CutOffError ? cause.message : requestText(connection, request, cause);
  return new RdError('ERR_CONNECTION', text, {
    cause,
    advice: 'Check --host and --port, and that the service is running.',
  });
}

function limitText({ limitMs }: TimeoutError): string {
  return limitMs < 1000 ? `${Math.ceil(limitMs)} ms` : `${Math.round(limitMs / 100) / 10} s`;
}

function fromText({ file }: Connection): string {
  return file === undefined ? '' : ` (the address in ${file})`;
}
