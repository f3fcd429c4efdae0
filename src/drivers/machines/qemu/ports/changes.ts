import type { GuestAddress, Listening } from './listening.ts';

/** How a port gets out of the guest: through the ssh connection, or through the network that QEMU makes for the guest. */
export type WayOut = 'ssh' | 'qemu';

/** One port and what leads, or should lead, to it. `unproven`: it was there once, and may be there still. */
export type Forward = {
  port: number;
  way: WayOut;
  address: GuestAddress;
} & ({ state: 'forwarded' } | { state: 'unproven' } | { state: 'failed'; reason: string; at: number });

/** In this order. */
interface Changes {
  close: Forward[];
  open: { port: number; address: GuestAddress }[];
}

/** Between two tries of a port that cannot be had here. */
export const RETRY_MS = 5_000;
/** A guest that listens everywhere does not get every port of this host. */
export const MOST_FORWARDS = 1_000;
/** The most open first: of two programs on one port, it is the one that is meant to be reached. */
const OPENNESS: readonly GuestAddress[] = ['0.0.0.0', '::', '127.0.0.1', '::1'];

/** The ports that should be reachable, lowest first, each with the address to reach it at. */
export function wantedPorts(
  listening: readonly Listening[],
  isOwn: (port: number) => boolean,
): Map<number, GuestAddress> {
  const wanted = new Map<number, GuestAddress>();
  for (const { port, address } of [...listening].sort((one, other) => one.port - other.port)) {
    if (isOwn(port)) continue;
    const known = wanted.get(port);
    if (known === undefined && wanted.size >= MOST_FORWARDS) break;
    if (known === undefined || OPENNESS.indexOf(address) < OPENNESS.indexOf(known)) wanted.set(port, address);
  }
  return wanted;
}

/**
 * Pure. What to take away and what to add so that exactly the wanted ports lead into the guest, all of them the given way. `now` in
 * the milliseconds of `Forward.at`.
 */
export function changes(
  wanted: ReadonlyMap<number, GuestAddress>,
  have: ReadonlyMap<number, Forward>,
  way: WayOut,
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
