import { isObject, type JsonObject, type JsonValue } from '../../../json.ts';
import type { Run } from '../../shell.ts';

/** A network link of the host. */
export interface Link {
  name: string;
  up: boolean;
  bridge: boolean;
  /** IPv4 addresses with their network's prefix. */
  addresses: readonly string[];
}

/** Returns all links, in kernel order. */
export async function readLinks(run: Run): Promise<Link[]> {
  return parseLinks((await run(['ip', '-json', '-details', 'address', 'show'])).stdout);
}

/** Parses `ip -json -details address show`. */
export function parseLinks(output: string): Link[] {
  return rows(output).flatMap((row) => {
    const { ifname, flags, linkinfo, addr_info: info } = row;
    if (typeof ifname !== 'string') return [];
    const addresses = (Array.isArray(info) ? info : []).flatMap((entry) => {
      if (!isObject(entry) || entry.family !== 'inet') return [];
      return typeof entry.local === 'string' ? [`${entry.local}/${String(entry.prefixlen)}`] : [];
    });
    return [
      {
        name: ifname,
        up: Array.isArray(flags) && flags.includes('UP'),
        bridge: isObject(linkinfo) && linkinfo.info_kind === 'bridge',
        addresses,
      },
    ];
  });
}

/** Returns the destinations of all IPv4 routes except the default one, from every table. */
export async function readRoutes(run: Run): Promise<Range[]> {
  return parseRoutes((await run(['ip', '-json', '-4', 'route', 'show', 'table', 'all'])).stdout);
}

/** Parses `ip -json -4 route show table all`. */
export function parseRoutes(output: string): Range[] {
  return rows(output).flatMap(({ dst }) => {
    const range = typeof dst === 'string' ? parseRange(dst) : undefined;
    return range && range.prefix > 0 ? [range] : [];
  });
}

function rows(output: string): JsonObject[] {
  // Some releases print nothing for an empty list.
  const value: JsonValue = output.trim() === '' ? [] : JSON.parse(output);
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** An IPv4 range as a number; `prefix` is its length in bits. */
export interface Range {
  address: number;
  prefix: number;
}

/** Parses `10.1.0.0/16` or a single address; undefined for anything else. */
export function parseRange(text: string): Range | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:\/(\d{1,2}))?$/.exec(text);
  if (!match) return undefined;
  const bytes = match.slice(1, 5).map(Number);
  const prefix = match[5] === undefined ? 32 : Number(match[5]);
  if (bytes.some((byte) => byte > 255) || prefix > 32) return undefined;
  return { address: bytes.reduce((sum, byte) => sum * 256 + byte, 0), prefix };
}

export function formatRange({ address, prefix }: Range): string {
  return `${formatAddress(address)}/${prefix}`;
}

function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
}

export function overlaps(a: Range, b: Range): boolean {
  const size = 2 ** (32 - Math.min(a.prefix, b.prefix));
  return Math.floor(a.address / size) === Math.floor(b.address / size);
}

/** Prefix of a range of 256 networks for containers. */
const POOL_PREFIX = 16;

/**
 * Returns a free range for containers: none that overlaps `taken`. The search starts at an offset derived from `seed`, so that two instances seldom
 * collide. 10/8 comes first because engines use 172.16/12 and 192.168/16 by default. Undefined when every private range is taken.
 */
export function choosePool(taken: readonly Range[], seed: number): Range | undefined {
  const tens = Array.from({ length: 255 }, (_, index) => [10, 1 + ((index + seed) % 255)] as const);
  const others = Array.from({ length: 15 }, (_, index) => [172, 31 - index] as const);
  for (const [first, second] of [...tens, ...others]) {
    const range = { address: first * 2 ** 24 + second * 2 ** 16, prefix: POOL_PREFIX };
    if (!taken.some((other) => overlaps(range, other))) return range;
  }
  return undefined;
}

/** Returns the first network of a pool, with the bridge's own address. */
export function bridgeAddress(pool: Range): string {
  return `${formatAddress(pool.address + 1)}/24`;
}

/** Engines name a network's bridge after the first 12 digits of its id. */
const ENGINE_BRIDGE = /^br-[0-9a-f]{12}$/;

/**
 * Returns the bridge of the instance and those of its engine's networks. `networks` is the file content with the ids of these networks: a range does
 * not identify the owner of a bridge, because another engine may have allocated a network from it since.
 */
export function ownBridges(links: readonly Link[], bridge: string, networks: string): Link[] {
  const isMade = (name: string) => ENGINE_BRIDGE.test(name) && networks.includes(name.slice(3));
  return links.filter(({ name }) => name === bridge || isMade(name));
}

/** Returns the bridges of the host that are not the instance's. */
export function otherBridges(links: readonly Link[], bridge: string, networks: string): Link[] {
  const own = ownBridges(links, bridge, networks);
  return links.filter((link) => link.bridge && !own.includes(link));
}

export function isReady(link: Link | undefined, pool: Range): boolean {
  return link?.up === true && link.addresses.includes(bridgeAddress(pool));
}

/** Returns addresses of the bridge from a former range. */
export function staleAddresses(links: readonly Link[], bridge: string, pool: Range): string[] {
  const addresses = links.find(({ name }) => name === bridge)?.addresses ?? [];
  return addresses.filter((address) => address !== bridgeAddress(pool));
}

/**
 * Returns the range for the instance's containers: the previous one, so that networks known to containers stay valid, unless it is in use now.
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
