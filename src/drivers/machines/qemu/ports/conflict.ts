import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { Port } from './forwards.ts';

/** Why a port of 127.0.0.1 is unavailable, as a clause; undefined when it is free. */
export function portConflict({ protocol, port }: Port): Promise<string | undefined> {
  return new Promise((resolve) => {
    const refused = (error: NodeJS.ErrnoException) => resolve(refusal(port, error));
    const free = () => resolve(undefined);
    if (protocol === 'udp') {
      const socket = createSocket('udp4');
      socket.once('error', refused);
      socket.bind({ address: '127.0.0.1', port, exclusive: true }, () => socket.close(free));
    } else {
      const server = createServer();
      server.once('error', refused);
      server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(free));
    }
  });
}

function refusal(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return `another program is listening on 127.0.0.1:${port}`;
  if (code === 'EACCES') return 'ports below 1024 are reserved for the administrator of this computer';
  return message;
}
