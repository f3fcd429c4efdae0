import { createConnection } from 'node:net';

/** Whether that Unix socket of this host accepts a connection. */
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
