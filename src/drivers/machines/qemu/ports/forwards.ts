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
export type Loopback = '127.0.0.1' | '::1';

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
