import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { PortHolder } from '../../../../os/port-holder.ts';
import { portHolders } from '../../../../os/port-holder.ts';
import type { Binding, Port } from './forwards.ts';
import { HOST_ADDRESSES } from './routes.ts';

/** Returns the reason that a port of this host is unavailable, as a clause, or undefined if it is free. */
export type PortConflict = (at: Port & { binding?: Binding }) => Promise<string | undefined>;

/** Names the program that uses the port, if the system shows it to this user. */
export function portConflicts(holderOf = portHolders()): PortConflict {
  return async (at) => {
    const address = HOST_ADDRESSES[at.binding ?? 'loopback'].ipv4;
    const error = await bindError(at, address);
    if (error === undefined) return undefined;
    if (error.code === 'EADDRINUSE') return inUse(`${address}:${at.port}`, at.port, await holderOf(at));
    if (error.code === 'EACCES') {
      return `this user may not open it; an administrator can permit it with "sysctl net.ipv4.ip_unprivileged_port_start=${at.port}"`;
    }
    return error.message;
  };
}

function inUse(wanted: string, port: number, holder: PortHolder | undefined): string {
  if (holder === undefined) return `another program is listening on ${wanted}`;
  const { address, uid, program } = holder;
  const others = uid === process.getuid?.() ? 'another program' : `a program of another user (uid ${uid})`;
  const who = program ? `${program.name} (process ${program.pid})` : others;
  return `${who} is listening on ${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function bindError({ protocol, port }: Port, address: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const free = () => resolve(undefined);
    if (protocol === 'udp') {
      const socket = createSocket('udp4');
      socket.on('error', resolve);
      socket.bind({ address, port, exclusive: true }, () => socket.close(free));
    } else {
      const server = createServer();
      server.once('error', resolve);
      server.listen({ host: address, port, exclusive: true }, () => server.close(free));
    }
  });
}
