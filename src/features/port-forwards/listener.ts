import { createServer, type Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { RdError } from '../../errors.ts';

const HOST = '127.0.0.1';

/** An open port of this machine. */
export interface OpenListener {
  /** The requested port, or the one that the system allocated. */
  readonly port: number;
  connections(): number;
  /** Closes the port and every connection through it. */
  close(): Promise<void>;
}

export interface ListenerOptions {
  /** Port to listen on; 0 for any free one. */
  hostPort: number;
  /** Opens the other side, once per connection. */
  dial(signal: AbortSignal): Promise<Duplex>;
  /** Dial timeout in milliseconds. */
  dialLimitMs: number;
  /** Connections at a time; further ones are closed at once. */
  maxConnections: number;
  onDialError(error: unknown): void;
}

/**
 * Listens on the loopback address and connects each client to the stream that `dial` opens; resets the client when that fails. Throws
 * `ERR_PORT_IN_USE`, `ERR_FORBIDDEN` for a privileged port, and `ERR_IO` with the cause.
 */
export async function openListener(options: ListenerOptions): Promise<OpenListener> {
  const closing = new AbortController();
  const open = new Map<Socket, Duplex | undefined>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    open.set(socket, undefined);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    connectClient(socket, options, closing.signal, (remote) => open.set(socket, remote));
  });
  server.maxConnections = options.maxConnections;
  const port = await listen(server, options.hostPort);
  return {
    port,
    connections: () => open.size,
    async close() {
      closing.abort();
      const closed = new Promise<void>((done) => server.close(() => done()));
      for (const [socket, remote] of open) {
        reset(socket);
        if (remote) reset(remote);
      }
      await closed;
    },
  };
}

async function connectClient(
  socket: Socket,
  { dial, dialLimitMs, onDialError }: ListenerOptions,
  closing: AbortSignal,
  opened: (remote: Duplex) => void,
): Promise<void> {
  const clientGone = new AbortController();
  const onClose = () => clientGone.abort();
  socket.once('close', onClose);
  try {
    const remote = await dial(AbortSignal.any([closing, clientGone.signal, AbortSignal.timeout(dialLimitMs)]));
    if (socket.destroyed || closing.aborted) {
      reset(remote.on('error', () => undefined));
      return;
    }
    opened(remote);
    tunnel(socket, remote);
  } catch (error) {
    if (!closing.aborted && !clientGone.signal.aborted) onDialError(error);
    // A reset shows the client that nothing was there; an orderly close would look like an empty response.
    reset(socket);
  } finally {
    socket.removeListener('close', onClose);
  }
}

function listen(server: Server, hostPort: number): Promise<number> {
  return new Promise((done, fail) => {
    server.once('error', (error) => fail(refusalError(hostPort, error)));
    server.listen({ host: HOST, port: hostPort, exclusive: true }, () => {
      const address = server.address();
      done(typeof address === 'object' && address !== null ? address.port : hostPort);
    });
  });
}

function refusalError(port: number, cause: Error): RdError {
  const code = 'code' in cause ? String(cause.code) : '';
  if (code === 'EADDRINUSE')
    return new RdError('ERR_PORT_IN_USE', `${HOST}:${port} is in use by another program`, {
      cause,
      advice: 'Use another host port, or end the program that has this one.',
    });
  if (code === 'EACCES' || code === 'EPERM') {
    return new RdError('ERR_FORBIDDEN', `this user is not allowed to open ${HOST}:${port}`, {
      cause,
      advice: 'Use a host port from 1024 on.',
    });
  }
  return new RdError('ERR_IO', `${HOST}:${port} cannot be opened: ${cause.message}`, {
    cause,
    advice: 'Use another host port.',
  });
}

/** Copies bytes both ways until both sides have ended. Supports half-close and backpressure; when one side is reset, so is the other. */
function tunnel(one: Duplex, other: Duplex): void {
  pipeHalf(one, other);
  pipeHalf(other, one);
}

/** Ends both halves at once. A plain close would look like a half-close, and a peer could wait forever. */
function reset(stream: Duplex): void {
  if (stream instanceof Socket) stream.resetAndDestroy();
  else stream.destroy();
}

function pipeHalf(from: Duplex, to: Duplex): void {
  from.on('error', () => reset(to));
  from.once('close', () => {
    if (!from.readableEnded || !from.writableFinished) reset(to);
  });
  from.pipe(to);
}
