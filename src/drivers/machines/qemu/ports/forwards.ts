import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { RdError } from '../../../../errors.ts';
import { isObject, parseJson } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import type { Connection } from '../guest.ts';
import type { Monitor, Qmp } from '../monitor.ts';
import type { GuestAddress, Listening } from './watch.ts';

/** How a guest port is forwarded: over the ssh connection, or by QEMU's user-mode network. */
export type ForwardRoute = 'ssh' | 'qemu';

/** A port and its actual or desired forward. `unproven`: it existed once and may still. */
export type Forward = {
  port: number;
  way: ForwardRoute;
  address: GuestAddress;
} & ({ state: 'forwarded' } | { state: 'unproven' } | { state: 'failed'; reason: string; at: number });

/** In this order. */
interface Changes {
  close: Forward[];
  open: { port: number; address: GuestAddress }[];
}

/** Interval between retries of an unavailable port. */
export const RETRY_MS = 5_000;
/** Limits how many host ports a guest can claim. */
export const MAX_FORWARDS = 1_000;
/** The widest address first: of two programs on one port, it is the one meant to be reached. */
const OPENNESS: readonly GuestAddress[] = ['0.0.0.0', '::', '127.0.0.1', '::1'];

/** The ports that should be reachable, lowest first, each with its address. */
export function wantedPorts(
  listening: readonly Listening[],
  isOwn: (port: number) => boolean,
): Map<number, GuestAddress> {
  const wanted = new Map<number, GuestAddress>();
  for (const { port, address } of [...listening].sort((one, other) => one.port - other.port)) {
    if (isOwn(port)) continue;
    const known = wanted.get(port);
    if (known === undefined && wanted.size >= MAX_FORWARDS) break;
    if (known === undefined || OPENNESS.indexOf(address) < OPENNESS.indexOf(known)) wanted.set(port, address);
  }
  return wanted;
}

/**
 * Pure. The removals and additions after which exactly the wanted ports are forwarded, all by the given route. `now` in the milliseconds of
 * `Forward.at`.
 */
export function changes(
  wanted: ReadonlyMap<number, GuestAddress>,
  have: ReadonlyMap<number, Forward>,
  way: ForwardRoute,
  now: number,
): Changes {
  const close: Forward[] = [];
  const fits = ({ port, ...forward }: Forward) => forward.way === way && forward.address === wanted.get(port);
  for (const forward of have.values()) if (!fits(forward)) close.push(forward);
  const open: Changes['open'] = [];
  for (const [port, address] of wanted) {
    const forward = have.get(port);
    if (forward && fits(forward)) {
      if (forward.state === 'forwarded') continue;
      if (forward.state === 'failed' && now - forward.at < RETRY_MS) continue;
    }
    open.push({ port, address });
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
      const kept = forwards.map(({ port, way, address }) => ({ port, way, address }));
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

/** Whether the forward still exists is a separate question. */
function parsed(value: unknown): Forward[] {
  if (!isObject(value)) return [];
  const { port, way, address } = value;
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) return [];
  if ((way !== 'ssh' && way !== 'qemu') || !isAddress(address)) return [];
  return [{ port, way, address, state: 'unproven' }];
}

function isAddress(value: unknown): value is GuestAddress {
  return ADDRESSES.includes(value);
}

/** One way to forward a port of 127.0.0.1 of the host to the same port of the guest. */
export interface Route {
  /** Idempotent. @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`. */
  open(port: number, address: GuestAddress, signal: AbortSignal): Promise<void>;
  /** @throws RdError as above, also when there is no such forward. */
  close(port: number, address: GuestAddress, signal: AbortSignal): Promise<void>;
}

/** Over the ssh connection: also reaches the guest's own loopback. */
export function sshRoute(guest: Pick<Connection, 'forward'>): Route {
  const words = (port: number, address: GuestAddress) => {
    const there = address === '::' || address === '::1' ? '[::1]' : '127.0.0.1';
    return ['-L', `127.0.0.1:${port}:${there}:${port}`];
  };
  return {
    open: async (port, address) => void (await guest.forward('forward', ...words(port, address))),
    close: async (port, address) => void (await guest.forward('cancel', ...words(port, address))),
  };
}

/**
 * By QEMU's user-mode network: the guest sees connections from outside.
 * @param network QEMU's name for it.
 */
export function qemuRoute(monitor: Pick<Monitor, 'use'>, network: string): Route {
  const remove = (qmp: Qmp, port: number, signal: AbortSignal) =>
    human(qmp, `hostfwd_remove ${network} tcp:127.0.0.1:${port}`, signal);
  return {
    open: (port, address, signal) => {
      if (address === '127.0.0.1' || address === '::1') {
        const message = `it listens only on ${address} in the guest, which only SSH port forwarding can reach`;
        return Promise.reject(new RdError('ERR_DRIVER_FAILED', message));
      }
      return monitor.use(async (qmp) => {
        // QEMU refuses a duplicate.
        await remove(qmp, port, signal);
        const answer = await human(qmp, `hostfwd_add ${network} tcp:127.0.0.1:${port}-:${port}`, signal);
        if (answer !== '') throw new RdError('ERR_DRIVER_FAILED', `QEMU refused: ${answer}`);
      }, signal);
    },
    close: async (port, _address, signal) => void (await monitor.use((qmp) => remove(qmp, port, signal), signal)),
  };
}

/** QMP has no command for this; the monitor command prints nothing on success. */
async function human(qmp: Qmp, line: string, signal: AbortSignal): Promise<string> {
  const answer = await qmp.execute('human-monitor-command', { 'command-line': line }, { signal });
  return typeof answer === 'string' ? answer.trim() : '';
}

/** Why a port of 127.0.0.1 is unavailable, as a clause; undefined when it is free. */
export function portConflict(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(refusal(port, error)));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

function refusal(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return `another program is listening on 127.0.0.1:${port}`;
  if (code === 'EACCES') return 'ports below 1024 are reserved for the administrator of this computer';
  return message;
}
