import { GUEST_ADDRESS } from '../arguments.ts';
import type { GuestAddress, Listening, Protocol } from './rules.ts';

/** The route of a forwarded guest port: over the ssh connection, or by QEMU's user-mode network. */
export type ForwardRoute = 'ssh' | 'qemu';

/** Addresses of this host that a forward listens on: those of the loopback interface, or all of them. */
export type Binding = 'loopback' | 'all';

/** The route and addresses of forwards. */
export interface ForwardMethod {
  /** Route for TCP. */
  route: ForwardRoute;
  /** Addresses for ports that are open to others in the guest; the rest are forwarded from the loopback interface. */
  binding: Binding;
}

/** A port of this host, by protocol. */
export interface Port {
  protocol: Protocol;
  port: number;
}

/** A desired forward. */
export interface Target extends Listening {
  way: ForwardRoute;
  binding: Binding;
}

/** A port and its actual or desired forward. `unproven`: it existed once and may still. */
export type Forward = Target &
  (
    | { state: 'forwarded'; addresses: readonly HostAddress[] }
    | { state: 'unproven' }
    | { state: 'failed'; reason: string; at: number }
  );

/** Addresses of this host that a forward listens on. */
export type HostAddress = '127.0.0.1' | '::1' | '0.0.0.0' | '::';

/** Changes, applied in this order. */
interface Changes {
  close: Forward[];
  open: Target[];
}

export type PortKey = `${Protocol} ${number}`;
export const keyOf = ({ protocol, port }: Port): PortKey => `${protocol} ${port}`;

/** Interval between retries of an unavailable port. */
export const RETRY_MS = 5_000;
/** Maximum number of host ports that a guest can claim. */
export const MAX_FORWARDS = 1_000;
/**
 * Rules first: they apply before a socket is reached, which may only reserve the port. Then widest first: of two programs on one port, the
 * one with the wider address is meant to be reached.
 */
const ADDRESS_ORDER: readonly GuestAddress[] = [GUEST_ADDRESS, '0.0.0.0', '::', '127.0.0.1', '::1'];

/** Returns the ports that should be reachable, lowest first, each with its address and forward. */
export function wantedPorts(
  listening: readonly Listening[],
  isOwn: (port: Port) => boolean,
  method: ForwardMethod,
): Map<PortKey, Target> {
  const wanted = new Map<PortKey, Target>();
  for (const socket of [...listening].sort((one, other) => one.port - other.port)) {
    if (isOwn(socket)) continue;
    const known = wanted.get(keyOf(socket));
    if (known === undefined && wanted.size >= MAX_FORWARDS) break;
    if (known === undefined || ADDRESS_ORDER.indexOf(socket.address) < ADDRESS_ORDER.indexOf(known.address)) {
      wanted.set(keyOf(socket), targetOf(socket, method));
    }
  }
  return wanted;
}

function targetOf(socket: Listening, { route, binding }: ForwardMethod): Target {
  return {
    ...socket,
    // Only QEMU can forward datagrams.
    way: socket.protocol === 'udp' ? 'qemu' : route,
    binding: isLoopback(socket.address) ? 'loopback' : binding,
  };
}

export function isLoopback(address: GuestAddress): boolean {
  return address === '127.0.0.1' || address === '::1';
}

/** Returns the removals and additions after which exactly the wanted ports are forwarded. `now` in the milliseconds of `Forward.at`. Pure. */
export function changes(
  wanted: ReadonlyMap<PortKey, Target>,
  current: ReadonlyMap<PortKey, Forward>,
  now: number,
): Changes {
  const fits = (forward: Forward, target = wanted.get(keyOf(forward))) =>
    target !== undefined &&
    forward.way === target.way &&
    forward.address === target.address &&
    forward.binding === target.binding;
  const close = [...current.values()].filter((forward) => !fits(forward));
  const open: Target[] = [];
  for (const [key, target] of wanted) {
    const forward = current.get(key);
    if (forward && fits(forward)) {
      if (forward.state === 'forwarded') continue;
      if (forward.state === 'failed' && now - forward.at < RETRY_MS) continue;
    }
    open.push(target);
  }
  return { close, open };
}
