import { chmod, rm } from 'node:fs/promises';
import type { Server, Socket } from 'node:net';
import { RdError } from '../../../errors.ts';

/** A server of this process at a socket of this host. */
export interface LocalServer {
  path: string;
  /** Ends it and every connection; harmless when repeated. */
  close(): Promise<void>;
}

/** Listens at the path, in a directory that is private. What a killed process left there is taken away. */
export async function listenHere(server: Server, path: string): Promise<LocalServer> {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(new RdError('ERR_DRIVER_FAILED', `no server could be opened at ${path}: ${cause.message}`, { cause }));
    server.once('error', fail);
    server.listen({ path }, () => {
      server.off('error', fail);
      // From here on an error concerns one connection, never the service.
      server.on('error', () => undefined);
      resolve();
    });
  });
  await chmod(path, 0o600);
  return {
    path,
    close: () =>
      new Promise((resolve) => {
        // An error here says that it is closed already.
        server.close(() => resolve());
        for (const socket of connections) socket.destroy();
      }),
  };
}
