import type { Link } from './links.ts';
import { linksWithin } from './links.ts';
import type { Range } from './subnet.ts';
import { bridgeAddress, choosePool, overlaps, parseRange } from './subnet.ts';

/** Name that engines give to the bridge of a network: the first 12 digits of its id. */
const ENGINE_BRIDGE = /^br-[0-9a-f]{12}$/;

/** The bridge of the instance and the bridges that its engine made for networks of its own. */
export function ownBridges(links: readonly Link[], bridge: string, pool: Range | undefined): Link[] {
  const within = pool ? linksWithin(links, pool).filter(({ name }) => ENGINE_BRIDGE.test(name)) : [];
  return [...links.filter(({ name }) => name === bridge), ...within];
}

/** Bridges of the host that are not the instance's. */
export function otherBridges(links: readonly Link[], bridge: string, pool: Range): Link[] {
  const own = ownBridges(links, bridge, pool);
  return links.filter((link) => link.bridge && !own.includes(link));
}

export function isReady(link: Link | undefined, pool: Range): boolean {
  return link?.up === true && link.addresses.includes(bridgeAddress(pool));
}

/** Addresses of the bridge from a range that it no longer has. */
export function staleAddresses(links: readonly Link[], bridge: string, pool: Range): string[] {
  const addresses = links.find(({ name }) => name === bridge)?.addresses ?? [];
  return addresses.filter((address) => address !== bridgeAddress(pool));
}

/**
 * The range for the instance's containers: the one of before, so that networks which containers know stay valid, unless
 * something else uses it now. Undefined when no range is free.
 */
export function poolFor(
  before: Range | undefined,
  links: readonly Link[],
  routes: readonly Range[],
  bridge: string,
  seed: number,
): Range | undefined {
  const own = ownBridges(links, bridge, before).flatMap(({ addresses }) => addresses);
  const ownRanges = own.flatMap((address) => parseRange(address) ?? []);
  const isOwn = (route: Range) => ownRanges.some((range) => route.prefix >= range.prefix && overlaps(route, range));
  const taken = routes.filter((route) => !isOwn(route));
  if (before && !taken.some((route) => overlaps(route, before))) return before;
  return choosePool(taken, seed);
}
