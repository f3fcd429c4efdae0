import { chmod } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { ListenOptions, Server as NetServer } from 'node:net';
import { createServer as createNetServer } from 'node:net';
import { RdError } from '../errors.ts';
import { defined } from '../json.ts';
import { PRODUCT } from '../product.ts';

const HOST = '127.0.0.1';
/** Number of ports to try, starting with the default one. */
const ATTEMPTS = 50;
/** Timeouts in milliseconds: idle connections, a whole request, the head of a request, and the interval of these checks. */
const KEEP_ALIVE = 5_000;
const REQUEST_TIMEOUT = 60_000;
const LIMITS = { head: 10_000, check: 2_000 };
/** Milliseconds that closing waits for pending responses. */
const CLOSE_LIMIT = 5_000;
/** Connections at a time: each takes a file descriptor, which the service needs for other things, too. */
const MAX_CONNECTIONS = 1_000;

export interface Listener {
  server: Server;
  port: number;
  /**
   * Listens on a Unix socket, too, for this user only, until `close`. The directory must already be private.
   * @throws the system error.
   */
  listenAt(path: string): Promise<void>;
  /**
   * Accepts connections on a socket of the service manager, too, passed as a file descriptor, until `close`.
   * @throws the system error.
   */
  listenOn(descriptor: number): Promise<void>;
  /** Refuses new connections from now on, at every address. Pending responses and open streams go on. Idempotent. */
  refuse(): void;
  /** Refuses new connections, and lets pending responses finish within a limit. */
  close(): Promise<void>;
}

/**
 * Binds a port on the loopback address: `port` if given, otherwise the first free one starting with the default. Requests
 * are handled once an app is attached to `server`.
 * @throws RdError `ERR_PORT_IN_USE` naming the port.
 */
export async function bindListener(port?: number, limits = LIMITS): Promise<Listener> {
  const server = createServer({ connectionsCheckingInterval: limits.check });
  server.maxConnections = MAX_CONNECTIONS;
  server.headersTimeout = limits.head;
  server.keepAliveTimeout = KEEP_ALIVE;
  server.requestTimeout = REQUEST_TIMEOUT;
  const bound = port === undefined ? await bindFirstFree(server) : await bindOnly(server, port);
  const locals: NetServer[] = [];
  async function alsoListen(where: ListenOptions | { fd: number }): Promise<void> {
    const local = createNetServer({ allowHalfOpen: true }, (socket) => server.emit('connection', socket));
    const failure = await tryListen(local, where);
    if (failure) throw failure;
    locals.push(local);
  }
  let refused: Promise<unknown> | undefined;
  /** Closes all listeners. Resolves when the last connection is closed. */
  const refuse = () => {
    // A server that never listened calls back with an error, which does not matter.
    refused ??= Promise.all([server, ...locals].map((each) => new Promise((resolve) => each.close(resolve))));
    return refused;
  };
  return {
    server,
    port: bound,
    async listenAt(path) {
      await alsoListen({ path });
      await chmod(path, 0o600);
    },
    listenOn: (fd) => alsoListen({ fd }),
    refuse: () => void refuse(),
    async close() {
      const limit = setTimeout(() => server.closeAllConnections(), CLOSE_LIMIT);
      const closed = refuse();
      // Includes connections through the socket.
      server.closeIdleConnections();
      await closed;
      clearTimeout(limit);
    },
  };
}

async function bindOnly(server: Server, port: number): Promise<number> {
  const failure = await tryPort(server, port);
  if (!failure) return portOf(server);
  if (failure.code === 'EADDRINUSE') throw inUse(`port ${port} on ${HOST} is in use by another program`, failure);
  throw new RdError('ERR_IO', `could not listen on port ${port} of ${HOST}: ${failure.message}`, {
    cause: failure,
    advice: 'Choose another port with --port, above 1023 for an ordinary user.',
  });
}

async function bindFirstFree(server: Server): Promise<number> {
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
    ...defined({ cause }),
    advice: 'Stop that program, or choose another port with --port.',
  });
}

function tryPort(server: Server, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return tryListen(server, { port, host: HOST });
}

function tryListen(
  server: NetServer,
  where: ListenOptions | { fd: number },
): Promise<NodeJS.ErrnoException | undefined> {
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
    server.listen({ ...where, exclusive: true });
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
