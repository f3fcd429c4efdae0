import { createConnection } from 'node:net';

/** Whether somebody takes a connection at that Unix socket of this host. */
export function takesConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
