import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import type { Server, Socket } from 'node:net';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { RdError } from '../../../errors.ts';
import type { Offer, ServerPlace } from '../../shell.ts';

/** Listens on this host; see `Shell.offer`. */
export async function offer(server: Server, at: ServerPlace): Promise<Offer> {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  if ('socket' in at) await makeRoom(at.socket);
  await listen(server, at);
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

async function makeRoom(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const found = await inspectSocketPath(path);
  if (found === 'dead') await rm(path, { force: true });
  if (found !== 'alive' && found !== 'other') return;
  const what = found === 'alive' ? 'another program listens there' : 'it is no socket';
  throw new RdError('ERR_DRIVER_TERMINAL', `${path} is needed and in use: ${what}`, {
    advice: 'Find out whose it is (ss -xlp, ls -l), and end that program or move the file away.',
  });
}

/** What exists at a socket path. */
async function inspectSocketPath(path: string): Promise<'nothing' | 'dead' | 'alive' | 'other'> {
  const entry = await lstat(path).catch(() => undefined);
  if (!entry) return 'nothing';
  if (!entry.isSocket()) return 'other';
  return new Promise((resolve) => {
    const probe = connect({ path });
    probe.once('connect', () => resolve('alive'));
    // A socket with a full queue fails like this, so it is in use.
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'dead' : 'alive'));
    probe.once('connect', () => probe.destroy());
  });
}

function listen(server: Server, at: ServerPlace): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => reject(refused(error, at));
    server.once('error', fail);
    server.listen('socket' in at ? { path: at.socket } : { host: '127.0.0.1', port: at.port }, () => {
      server.off('error', fail);
      // From here on an error concerns one connection, not the service.
      server.on('error', () => undefined);
      resolve();
    });
  });
}

function refused(error: NodeJS.ErrnoException, at: ServerPlace): RdError {
  const where = 'socket' in at ? at.socket : `127.0.0.1:${at.port}`;
  return new RdError(
    error.code === 'EADDRINUSE' ? 'ERR_PORT_IN_USE' : 'ERR_DRIVER_FAILED',
    `no server could be opened at ${where}: ${error.message}`,
    { cause: error },
  );
}
