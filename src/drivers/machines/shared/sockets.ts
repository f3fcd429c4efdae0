import { chmod } from 'node:fs/promises';
import { connect, type NetConnectOpts, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { RdError } from '../../../errors.ts';
import type { Offer, ServerPlace } from '../../shell.ts';

/**
 * Listens on this host. A socket file must not exist; it is private to this user.
 * @throws RdError `ERR_PORT_IN_USE`, `ERR_DRIVER_FAILED`.
 */
export async function listenOnHost(server: Server, at: ServerPlace): Promise<Offer> {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => reject(listenError(error, at));
    server.once('error', fail);
    server.listen('socket' in at ? { path: at.socket } : { host: '127.0.0.1', port: at.port }, () => {
      server.off('error', fail);
      // From now on an error concerns one connection, not the service.
      server.on('error', () => undefined);
      resolve();
    });
  });
  if ('socket' in at) await chmod(at.socket, 0o600);
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    close: () =>
      new Promise((resolve) => {
        // An error here means that it is already closed.
        server.close(() => resolve());
        for (const socket of connections) socket.destroy();
      }),
  };
}

function listenError(error: NodeJS.ErrnoException, at: ServerPlace): RdError {
  const where = 'socket' in at ? at.socket : `127.0.0.1:${at.port}`;
  const code = error.code === 'EADDRINUSE' ? 'ERR_PORT_IN_USE' : 'ERR_DRIVER_FAILED';
  return new RdError(code, `cannot listen on ${where}: ${error.message}`, { cause: error });
}

/**
 * Opens a connection that supports half-close.
 * @throws RdError `ERR_NOT_READY` when nothing listens, `ERR_CANCELLED`.
 */
export function connectTo(to: { host: string; port: number } | { path: string }, signal: AbortSignal): Promise<Duplex> {
  const where = 'path' in to ? to.path : `${to.host}:${to.port}`;
  const canceled = () => new RdError('ERR_CANCELLED', `connecting to ${where} was canceled`);
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(canceled());
    const options: NetConnectOpts = { ...to, allowHalfOpen: true, noDelay: true };
    const socket = connect(options);
    const giveUp = () => {
      socket.destroy();
      reject(canceled());
    };
    signal.addEventListener('abort', giveUp, { once: true });
    socket.once('connect', () => {
      signal.removeEventListener('abort', giveUp);
      resolve(socket);
    });
    // The listener stays: an error that comes before the caller listens must not end the service.
    socket.on('error', (cause) => {
      signal.removeEventListener('abort', giveUp);
      reject(new RdError('ERR_NOT_READY', `cannot connect to ${where}: ${cause.message}`, { cause }));
    });
  });
}
