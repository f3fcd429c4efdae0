import type { Link } from './links.ts';
import type { Range } from './subnet.ts';
import { bridgeAddress, choosePool, overlaps, parseRange } from './subnet.ts';

/** Engines name a network's bridge after the first 12 digits of its id. */
const ENGINE_BRIDGE = /^br-[0-9a-f]{12}$/;

/**
 * The bridge of the instance and those of its engine's networks. `networks` is the file content with the ids of these networks: a range
 * does not identify the owner of a bridge, because another engine may have allocated a network from it since.
 */
export function ownBridges(links: readonly Link[], bridge: string, networks: string): Link[] {
  const isMade = (name: string) => ENGINE_BRIDGE.test(name) && networks.includes(name.slice(3));
  return links.filter(({ name }) => name === bridge || isMade(name));
}

/** Bridges of the host that are not the instance's. */
export function otherBridges(links: readonly Link[], bridge: string, networks: string): Link[] {
  const own = ownBridges(links, bridge, networks);
  return links.filter((link) => link.bridge && !own.includes(link));
}

export function isReady(link: Link | undefined, pool: Range): boolean {
  return link?.up === true && link.addresses.includes(bridgeAddress(pool));
}

/** Addresses of the bridge from a former range. */
export function staleAddresses(links: readonly Link[], bridge: string, pool: Range): string[] {
  const addresses = links.find(({ name }) => name === bridge)?.addresses ?? [];
  return addresses.filter((address) => address !== bridgeAddress(pool));
}

/**
 * The range for the instance's containers: the previous one, so that networks known to containers stay valid, unless it is in use now.
 * Undefined when no range is free.
 */
export function poolFor(
  before: Range | undefined,
  links: readonly Link[],
  routes: readonly Range[],
  bridge: string,
  networks: string,
  seed: number,
): Range | undefined {
  const own = ownBridges(links, bridge, networks).flatMap(({ addresses }) => addresses);
  const ownRanges = own.flatMap((address) => parseRange(address) ?? []);
  const isOwn = (route: Range) => ownRanges.some((range) => route.prefix >= range.prefix && overlaps(route, range));
  const taken = routes.filter((route) => !isOwn(route));
  if (before && !taken.some((route) => overlaps(route, before))) return before;
  return choosePool(taken, seed);
}
