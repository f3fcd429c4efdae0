/** An IPv4 range as a number; `prefix` is its length in bits. */
export interface Range {
  address: number;
  prefix: number;
}

/** `10.1.0.0/16` or a single address; undefined for anything else. */
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

/** A range of 256 networks for containers. */
const POOL_PREFIX = 16;

/**
 * A free range for containers: none that overlaps `taken`. The search starts at an offset derived from `seed`, so that two instances seldom
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

/** The first network of a pool, with the bridge's own address. */
export function bridgeAddress(pool: Range): string {
  return `${formatAddress(pool.address + 1)}/24`;
}
