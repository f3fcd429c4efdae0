import type { JsonObject, JsonValue } from '../../../json.ts';
import { isObject } from '../../../json.ts';
import type { Run } from './commands.ts';
import type { Range } from './subnet.ts';
import { parseRange } from './subnet.ts';

/** A network link of the host. */
export interface Link {
  name: string;
  up: boolean;
  bridge: boolean;
  /** IPv4 addresses with their network's prefix. */
  addresses: readonly string[];
}

/** All links, in kernel order. */
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

/** Destinations of all IPv4 routes except the default one, from every table. */
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
