import type { GuestAddress, Listening } from './listening.ts';

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
