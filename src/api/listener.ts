import type { Server } from 'node:http';
import { createServer } from 'node:http';
import { RdError } from '../errors.ts';
import { PRODUCT } from '../product.ts';

const HOST = '127.0.0.1';
/** Ports tried from the default one on. */
const ATTEMPTS = 50;
/** Milliseconds. An idle connection; the reception of one request; how long a stop waits for answers under way. */
const KEEP_ALIVE = 5_000;
const REQUEST_TIMEOUT = 300_000;
const CLOSE_LIMIT = 5_000;

export interface Listener {
  server: Server;
  port: number;
  /** Refuses new connections and lets the answers under way finish, for a bounded time. */
  close(): Promise<void>;
}

/**
 * Takes a port on the loopback address before anything else is begun: `port` alone if given, else the first free one from the
 * default on. Requests are answered once an app is attached to `server`.
 * @throws RdError `ERR_PORT_IN_USE` naming the port.
 */
export async function bindListener(port?: number): Promise<Listener> {
  const server = createServer();
  server.keepAliveTimeout = KEEP_ALIVE;
  server.requestTimeout = REQUEST_TIMEOUT;
  const bound = port === undefined ? await firstFree(server) : await only(server, port);
  return { server, port: bound, close: () => close(server) };
}

async function only(server: Server, port: number): Promise<number> {
  const failure = await tryPort(server, port);
  if (!failure) return portOf(server);
  if (failure.code === 'EADDRINUSE') throw inUse(`port ${port} on ${HOST} is in use by another program`, failure);
  throw new RdError('ERR_IO', `could not listen on port ${port} of ${HOST}: ${failure.message}`, {
    cause: failure,
    advice: 'Choose another port with --port, above 1023 for an ordinary user.',
  });
}

async function firstFree(server: Server): Promise<number> {
  const last = PRODUCT.defaultPort + ATTEMPTS - 1;
  for (let port = PRODUCT.defaultPort; port <= last; port += 1) {
    const failure = await tryPort(server, port);
    if (!failure) return port;
    if (failure.code !== 'EADDRINUSE' && failure.code !== 'EACCES') {
      throw new RdError('ERR_IO', `could not listen on ${HOST}: ${failure.message}`, {
        cause: failure,
        advice: 'Check that the loopback interface is up.',
      });
    }
  }
  throw inUse(`ports ${PRODUCT.defaultPort} to ${last} on ${HOST} are all in use`);
}

function inUse(message: string, cause?: unknown): RdError {
  return new RdError('ERR_PORT_IN_USE', message, {
    ...(cause === undefined ? {} : { cause }),
    advice: 'Stop that program, or choose another port with --port.',
  });
}

/** One attempt; a server that failed to listen can try again. */
function tryPort(server: Server, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException) => {
      server.off('listening', succeeded);
      resolve(error);
    };
    const succeeded = () => {
      server.off('error', failed);
      resolve(undefined);
    };
    server.once('error', failed).once('listening', succeeded);
    server.listen({ port, host: HOST, exclusive: true });
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => server.closeAllConnections(), CLOSE_LIMIT);
    server.close(() => {
      clearTimeout(limit);
      resolve();
    });
    server.closeIdleConnections();
  });
}
