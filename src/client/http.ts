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
import { CutOffError, exchangeOver, ProtocolError } from './http-exchange.ts';
import { notOurService, requestText } from './replies.ts';
import { runtimeWire } from './runtime-wire.ts';
import { overSocket, type Wire } from './wire.ts';

/** Bytes of a response; a larger one is rejected. No response of the API comes near this. */
const ANSWER_LIMIT = 64 * 1024 * 1024;
/** Milliseconds for a read; writes may have to wait for other writes. */
const READ_LIMIT = 10_000;
const WRITE_LIMIT = 60_000;
/** Milliseconds to connect; locally that is instant. */
const CONNECT_LIMIT = 5_000;

/** Returns the default limit of a response, in milliseconds. */
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
 * Sends over HTTP, always directly: a proxy would see the password. Nothing is sent before the listener is verified in the way that the connection's
 * `Reached` demands.
 * @throws RdError `ERR_NOT_RUNNING` when nothing listens, or the wrong program; `ERR_DEADLINE` on timeout,
 * `ERR_CANCELLED` by the signal, `ERR_CONNECTION` for every other transport failure.
 */
export const httpTransport: Transport = async (connection, request) => {
  const { timeoutMs = answerLimit(request), signal } = request;
  const ending = new Ending();
  const timer = setTimeout(() => ending.begin(new TimeoutError('did not answer', timeoutMs)), timeoutMs);
  const cancel = () => ending.begin(signal?.reason);
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    if (signal?.aborted) throw signal.reason;
    const opened = openWire(connection, timeoutMs, ending);
    // No await if it is open: a connection that fails at once reports it before the next microtask.
    const wire = opened instanceof Promise ? await opened : opened;
    return await exchange(connection, request, { wire, ending, onStream: () => clearTimeout(timer) });
  } catch (cause) {
    if (cause instanceof RdError) throw cause;
    throw transportError(connection, request, cause);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  }
};

/** Opens a connection, without waiting for it if the way to it needs no proof. */
function openWire(connection: Connection, timeoutMs: number, ending: Ending): Wire | Promise<Wire> {
  const { reached, host, port } = connection;
  if (reached.by !== 'word' && reached.by !== 'socket') {
    const abort = new AbortController();
    ending.onBegin = (reason) => abort.abort(reason);
    return import('./listener.ts')
      .then(({ connectVerified }) => connectVerified(connection, { signal: abort.signal }))
      .then(overSocket);
  }
  // The kernel accepts or refuses at once.
  if (reached.by === 'socket') {
    if (process.versions.bun !== undefined) return runtimeWire(reached.path);
    return overSocket(net().connect({ path: reached.path }));
  }
  const socket = net().connect({ host, port });
  const limitMs = Math.min(CONNECT_LIMIT, timeoutMs);
  const late = () => ending.begin(new TimeoutError('did not accept the connection', limitMs));
  const connecting = setTimeout(late, limitMs);
  return overSocket(
    socket.once('connect', () => clearTimeout(connecting)).once('close', () => clearTimeout(connecting)),
  );
}

/** Loads `node:net` on demand: in the standalone file that takes as long as the request. */
function net(): typeof import('node:net') {
  return process.getBuiltinModule('node:net');
}

interface Exchange {
  wire: Wire;
  ending: Ending;
  /** Called when the head has arrived and the body will be passed on in parts, however long that takes. */
  onStream(): void;
}

/** Sends one request over a connection, then closes it. */
async function exchange(
  connection: Connection,
  request: HttpRequest,
  { wire, ending, onStream }: Exchange,
): Promise<HttpResponse> {
  ending.onBegin = (reason) => wire.destroy(reason);
  const parts: Buffer[] = [];
  let size = 0;
  let onPart: HttpRequest['onPart'];
  try {
    if (ending.reason) throw ending.reason;
    const headers = { ...requestHeaders(connection, request), Host: addressOf(connection), Connection: 'close' };
    const { method, path, body } = request;
    const { head } = await exchangeOver(
      wire,
      { method: method.toUpperCase(), path, headers, body },
      {
        onHead({ status }) {
          onPart = status === 200 ? request.onPart : undefined;
          if (onPart) onStream();
        },
        onBody(part) {
          if (onPart) return onPart(part);
          size += part.length;
          if (size > ANSWER_LIMIT) throw new Error(`the response exceeds ${ANSWER_LIMIT} bytes`);
          parts.push(part);
        },
      },
    );
    const [first] = parts;
    return { ...head, body: first && parts.length === 1 ? first : Buffer.concat(parts) };
  } finally {
    ending.onBegin = undefined;
    // Deferred: a short command has exited by then, and closing takes a fortieth of its time.
    setImmediate(() => wire.destroy());
  }
}

/** The early end of a request. A lightweight replacement for `AbortController`: loading that and its events takes as long as parsing the response. */
class Ending {
  /** The error to throw, once the end has begun. */
  reason: Error | undefined;
  onBegin: ((reason: Error) => void) | undefined;

  begin(reason: unknown): void {
    if (this.reason) return;
    this.reason = reason instanceof Error ? reason : new Error(String(reason));
    this.onBegin?.(this.reason);
  }
}

class TimeoutError extends Error {
  readonly limitMs: number;
  constructor(what: string, limitMs: number) {
    super(what);
    this.limitMs = limitMs;
  }
}

/** The headers of a request in the form that Rancher Desktop's `rdctl` sends; some services check them. */
export function requestHeaders(connection: Connection, request: HttpRequest): Record<string, string | number> {
  const credentials = Buffer.from(`${connection.user}:${connection.password}`).toString('base64');
  return {
    Authorization: `Basic ${credentials}`,
    'User-Agent': `${PRODUCT.name}/${PRODUCT.version}`,
    'Content-Type': request.body === undefined ? 'text/plain' : 'application/json',
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
  if (cause instanceof ProtocolError) return notOurService(connection, 'its response is not HTTP', cause);
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
