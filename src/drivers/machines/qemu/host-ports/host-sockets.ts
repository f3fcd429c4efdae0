import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSockets } from '../ports/watch.ts';
import type { HostSockets } from './open-ports.ts';

const TABLES = ['tcp', 'tcp6', 'udp', 'udp6'];
/** Linux's default range of ports for clients. */
const CLIENT_PORTS: [number, number] = [32_768, 60_999];

/**
 * Returns the sockets of this host, or undefined if it has no tables of them.
 * @param proc mount point of the kernel's files.
 */
export async function hostSockets(proc = '/proc'): Promise<HostSockets | undefined> {
  // A host without IPv6 has only two of these files.
  const texts = await Promise.all(TABLES.map((name) => textOf(join(proc, 'net', name))));
  if (texts.every((text) => text === undefined)) return undefined;
  const range = (await textOf(join(proc, 'sys/net/ipv4/ip_local_port_range')))?.trim().split(/\s+/).map(Number);
  const [first = CLIENT_PORTS[0], last = CLIENT_PORTS[1]] = range ?? [];
  return { listening: parseSockets(texts.join('\n')), clientPorts: [first, last] };
}

function textOf(path: string): Promise<string | undefined> {
  return readFile(path, 'latin1').catch(() => undefined);
}
