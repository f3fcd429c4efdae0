import { createSocket } from 'node:dgram';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { RdError } from '../../../../errors.ts';
import { isObject, parseJson } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import type { Connection } from '../guest.ts';
import type { Monitor, Qmp } from '../monitor.ts';
import type { GuestAddress, Listening, Protocol } from './watch.ts';

/** How a guest port is forwarded: over the ssh connection, or by QEMU's user-mode network. */
export type ForwardRoute = 'ssh' | 'qemu';

/** A port of this host, by protocol. */
export interface Port {
  protocol: Protocol;
  port: number;
}

/** A port and its actual or desired forward. `unproven`: it existed once and may still. */
export type Forward = Listening & {
  way: ForwardRoute;
} & (
    | { state: 'forwarded'; addresses: readonly Loopback[] }
    | { state: 'unproven' }
    | { state: 'failed'; reason: string; at: number }
  );

/** Addresses of this host that a forward listens on. */
type Loopback = '127.0.0.1' | '::1';

/** In this order. */
interface Changes {
  close: Forward[];
  open: (Listening & { way: ForwardRoute })[];
}

export type PortKey = `${Protocol} ${number}`;
export const keyOf = ({ protocol, port }: Port): PortKey => `${protocol} ${port}`;

/** Only QEMU can forward datagrams. */
const routeFor = ({ protocol }: Port, route: ForwardRoute): ForwardRoute => (protocol === 'udp' ? 'qemu' : route);

/** Interval between retries of an unavailable port. */
export const RETRY_MS = 5_000;
/** Limits how many host ports a guest can claim. */
export const MAX_FORWARDS = 1_000;
/** Widest first: of two programs on one port, the one with the wider address is meant to be reached. */
const ADDRESS_ORDER: readonly GuestAddress[] = ['0.0.0.0', '::', '127.0.0.1', '::1'];

/** The ports that should be reachable, lowest first, each with its address. */
export function wantedPorts(listening: readonly Listening[], isOwn: (port: Port) => boolean): Map<PortKey, Listening> {
  const wanted = new Map<PortKey, Listening>();
  for (const socket of [...listening].sort((one, other) => one.port - other.port)) {
    if (isOwn(socket)) continue;
    const known = wanted.get(keyOf(socket));
    if (known === undefined && wanted.size >= MAX_FORWARDS) break;
    if (known === undefined || ADDRESS_ORDER.indexOf(socket.address) < ADDRESS_ORDER.indexOf(known.address)) {
      wanted.set(keyOf(socket), socket);
    }
  }
  return wanted;
}

/**
 * Pure. The removals and additions after which exactly the wanted ports are forwarded, those of TCP by the given route. `now` in the
 * milliseconds of `Forward.at`.
 */
export function changes(
  wanted: ReadonlyMap<PortKey, Listening>,
  current: ReadonlyMap<PortKey, Forward>,
  route: ForwardRoute,
  now: number,
): Changes {
  const fits = (forward: Forward) =>
    forward.way === routeFor(forward, route) && forward.address === wanted.get(keyOf(forward))?.address;
  const close = [...current.values()].filter((forward) => !fits(forward));
  const open: Changes['open'] = [];
  for (const [key, socket] of wanted) {
    const forward = current.get(key);
    if (forward && fits(forward)) {
      if (forward.state === 'forwarded') continue;
      if (forward.state === 'failed' && now - forward.at < RETRY_MS) continue;
    }
    open.push({ ...socket, way: routeFor(socket, route) });
  }
  return { close, open };
}

/** Records the forwards of a service for the next one: neither ssh nor QEMU reports which are ours. */
export interface ForwardRecord {
  /** Empty when the file is missing or cannot be parsed. */
  read(): Promise<Forward[]>;
  /** @throws RdError `ERR_IO`. */
  write(forwards: readonly Forward[]): Promise<void>;
  remove(): Promise<void>;
}

const ADDRESSES: readonly unknown[] = ['0.0.0.0', '::', '127.0.0.1', '::1'] satisfies GuestAddress[];

/** @param file in the machine's runtime directory. */
export function forwardRecord(file: string): ForwardRecord {
  let written = '';
  return {
    async read() {
      const text = await readIfThere(file);
      const value = text === undefined ? undefined : parseJson(text);
      return Array.isArray(value) ? value.flatMap(parsed) : [];
    },
    async write(forwards) {
      const kept = forwards.map(({ protocol, port, way, address }) => ({ protocol, port, way, address }));
      const text = `${JSON.stringify(kept)}\n`;
      if (text === written) return;
      await writeFileAtomic(file, text);
      written = text;
    },
    async remove() {
      written = '';
      await rm(file, { force: true });
    },
  };
}

/** A recorded forward is unproven: it may no longer exist. */
function parsed(value: unknown): Forward[] {
  if (!isObject(value)) return [];
  const { protocol = 'tcp', port, way, address } = value;
  if (protocol !== 'tcp' && protocol !== 'udp') return [];
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) return [];
  if ((way !== 'ssh' && way !== 'qemu') || !isAddress(address)) return [];
  return [{ protocol, port, way, address, state: 'unproven' }];
}

function isAddress(value: unknown): value is GuestAddress {
  return ADDRESSES.includes(value);
}

/** A method of forwarding a port of this host to the same port of the guest. */
export interface Route {
  /** Idempotent. @returns where it listens, 127.0.0.1 first. @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`. */
  open(at: Listening, signal: AbortSignal): Promise<readonly Loopback[]>;
  /** @throws RdError as above, also when there is no such forward. */
  close(at: Listening, signal: AbortSignal): Promise<void>;
}

/** Over the ssh connection, which supports only TCP but also reaches the guest's loopback. */
export function sshRoute(guest: Pick<Connection, 'forward'>): Route {
  const options = (hostAddress: Loopback, { port, address }: Listening) => {
    const guestAddress = address === '::' || address === '::1' ? '[::1]' : '127.0.0.1';
    return ['-L', `${hostAddress === '::1' ? '[::1]' : hostAddress}:${port}:${guestAddress}:${port}`];
  };
  return {
    async open(at) {
      await guest.forward('forward', ...options('127.0.0.1', at));
      // The host may have no IPv6, or another program may use the port; IPv4 clients work anyway.
      const both = await guest.forward('forward', ...options('::1', at)).then(
        () => true,
        () => false,
      );
      return both ? ['127.0.0.1', '::1'] : ['127.0.0.1'];
    },
    async close(at) {
      await guest.forward('cancel', ...options('::1', at)).catch(() => undefined);
      await guest.forward('cancel', ...options('127.0.0.1', at));
    },
  };
}

/**
 * Over QEMU's user-mode network, which forwards from IPv4 only; the guest sees connections from outside.
 * @param network QEMU's name for the network.
 */
export function qemuRoute(monitor: Pick<Monitor, 'use'>, network: string): Route {
  const remove = (qmp: Qmp, { protocol, port }: Port, signal: AbortSignal) =>
    human(qmp, `hostfwd_remove ${network} ${protocol}:127.0.0.1:${port}`, signal);
  return {
    async open(at, signal) {
      const { protocol, port, address } = at;
      if (address === '127.0.0.1' || address === '::1') {
        const how = protocol === 'tcp' ? 'only SSH port forwarding can reach' : 'no UDP forward can reach';
        throw new RdError('ERR_DRIVER_FAILED', `it listens only on ${address} in the guest, which ${how}`);
      }
      await monitor.use(async (qmp) => {
        // QEMU refuses a duplicate.
        await remove(qmp, at, signal);
        const answer = await human(qmp, `hostfwd_add ${network} ${protocol}:127.0.0.1:${port}-:${port}`, signal);
        if (answer !== '') throw new RdError('ERR_DRIVER_FAILED', `QEMU refused: ${answer}`);
      }, signal);
      return ['127.0.0.1'];
    },
    close: async (at, signal) => void (await monitor.use((qmp) => remove(qmp, at, signal), signal)),
  };
}

/** QMP has no command for this; the monitor command prints nothing on success. */
async function human(qmp: Qmp, line: string, signal: AbortSignal): Promise<string> {
  const answer = await qmp.execute('human-monitor-command', { 'command-line': line }, { signal });
  return typeof answer === 'string' ? answer.trim() : '';
}

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
