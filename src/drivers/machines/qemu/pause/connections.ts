import { readFile } from 'node:fs/promises';
import { RdError } from '../../../../errors.ts';

/** A place that clients connect to: a socket path, or a port of the loopback interface. */
export type Door = string | number;

/** The places that clients of a machine connect to. */
export interface Doors {
  /** Paths of sockets. ssh binds its control socket at the path, a dot and random letters, and renames it. */
  sockets: ReadonlySet<string>;
  /** TCP ports, with the addresses of this host that they are open on. */
  ports: ReadonlyMap<number, 'loopback' | 'all'>;
}

/** The kernel's tables of this network namespace, as text. */
export interface SocketTables {
  /** `/proc/net/unix`, see proc_pid_net(5). */
  unix: string;
  /** `/proc/net/tcp` and `/proc/net/tcp6`. */
  tcp: string;
}

/** SS_CONNECTING is the server's end of a connection that was not accepted yet; SS_CONNECTED follows. */
const UNIX_LINE = /^[0-9a-f]+: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} 0001 (02|03) +\d+ (\/.*)$/gim;
/** Suffix that ssh adds to the path of its control socket. */
const SSH_SUFFIX = /\.[0-9A-Za-z]{16}$/;
/** Local address and port, remote address and port, and the state. */
const TCP_LINE = /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /gm;
/** ESTABLISHED, SYN_RECV, and CLOSE_WAIT: the client has sent everything, and may wait for the answer. */
const OPEN_STATES: ReadonlySet<string> = new Set(['01', '03', '08']);
/** 127.0.0.1, `::1` and `::ffff:127.0.0.1`, as a little-endian kernel prints them. */
const LOOPBACK: ReadonlySet<string> = new Set([
  '0100007F',
  '00000000000000000000000001000000',
  '0000000000000000FFFF00000100007F',
]);

/** Returns the connections at each door, accepted or waiting for that. Only the servers' ends count, because only those show the door. Pure. */
export function connectionsAt({ sockets, ports }: Doors, { unix, tcp }: SocketTables): Map<Door, number> {
  const found = new Map<Door, number>();
  const count = (door: Door) => void found.set(door, (found.get(door) ?? 0) + 1);
  for (const [, , path = ''] of unix.matchAll(UNIX_LINE)) {
    const door = sockets.has(path) ? path : path.replace(SSH_SUFFIX, '');
    if (sockets.has(door)) count(door);
  }
  for (const [, address = '', hex = '', state = ''] of tcp.matchAll(TCP_LINE)) {
    const port = Number.parseInt(hex, 16);
    const reach = OPEN_STATES.has(state) ? ports.get(port) : undefined;
    if (reach === 'all' || (reach === 'loopback' && LOOPBACK.has(address))) count(port);
  }
  return found;
}

/** Returns the first door that has more connections than these, or undefined. Pure. */
export function doorInUse(found: ReadonlyMap<Door, number>, own: ReadonlyMap<Door, number>): Door | undefined {
  return [...found].find(([door, count]) => count > (own.get(door) ?? 0))?.[0];
}

/** Reads the tables of this host. @throws RdError `ERR_DRIVER_FAILED` when the kernel does not show them. */
export async function readSocketTables(): Promise<SocketTables> {
  const [unix, tcp, tcp6] = await Promise.all([
    table('/proc/net/unix'),
    table('/proc/net/tcp'),
    // Absent without IPv6.
    table('/proc/net/tcp6').catch(() => ''),
  ]);
  return { unix, tcp: tcp + tcp6 };
}

/**
 * Returns numbers of this host that change with every connection, as text. Reading the tables of TCP takes milliseconds even when they are short, and
 * this takes microseconds.
 */
export async function readSocketCounts(): Promise<string> {
  return table('/proc/net/sockstat');
}

async function table(path: string): Promise<string> {
  return readFile(path, 'latin1').catch((cause: unknown) => {
    throw new RdError('ERR_DRIVER_FAILED', `${path} cannot be read, so nothing shows who uses the machine`, { cause });
  });
}
