import { isObject, type JsonValue } from '../json.ts';
import type { Blocks } from './blocks.gen.ts';
import { fieldAt } from './fields.ts';
import type { ReadValue } from './issue.ts';

export type MountMode = Blocks['machine']['mounts'][string];

/** Returns the first and last port of an entry of `hostPorts`. */
export function portRange(entry: number | string): [first: number, last: number] {
  const [first = 0, last = first] = String(entry).split('-').map(Number);
  return [first, last];
}

/** Merges port ranges: the result is sorted and disjoint, and adjacent ranges become one. */
export function mergePortRanges(ranges: readonly (readonly [first: number, last: number])[]): [number, number][] {
  const merged: [number, number][] = [];
  for (const [first, last] of [...ranges].sort(([a], [b]) => a - b)) {
    const previous = merged.at(-1);
    if (previous && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** Reads mounts, removing doubled and trailing slashes from their paths. */
export const readMounts: ReadValue = (value, note) => {
  if (!isObject(value)) {
    note([], 'mounts must be a mapping of directories to modes', { expected: 'object' });
    return undefined;
  }
  const modes = fieldAt('machine.mounts')?.enum ?? [];
  const expected = `${modes.join(', ')}, or null to remove the entry`;
  const mounts: Record<string, string | null> = {};
  for (const [name, mode] of Object.entries(value)) {
    const path = mountPath(name);
    if (path === undefined) {
      const form = 'an absolute path, or one that begins with ~/';
      note([name], `"${name}" is not the path of a directory`, { expected: form, part: 'key' });
    } else if (Object.hasOwn(mounts, path)) {
      note([name], `"${path}" is listed twice`, { part: 'key' });
    } else if (mode === null || (typeof mode === 'string' && modes.includes(mode))) {
      mounts[path] = mode;
    } else {
      note([name], `${JSON.stringify(mode)} is not a mode of a mount`, { expected });
    }
  }
  return mounts;
};

/** Returns the path without doubled and trailing slashes, or undefined for a relative path and for one with `.`, `..` or control characters. */
function mountPath(name: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (!/^(?:~(?:\/|$)|\/)/.test(name) || /[\u0000-\u001f\u007f]/.test(name)) return undefined;
  const [root = '', ...names] = name.split('/');
  const parts = names.filter((part) => part !== '');
  if (parts.some((part) => part === '.' || part === '..')) return undefined;
  return root === '' && parts.length === 0 ? '/' : [root, ...parts].join('/');
}

/** Reads host ports: sorted, with overlapping and adjacent ranges merged. */
export const readHostPorts: ReadValue = (value, note) => {
  if (!Array.isArray(value)) {
    note([], 'hostPorts must be a list of ports', { expected: 'array' });
    return undefined;
  }
  const ranges = value.flatMap((entry, index): [number, number][] => {
    const range = rangeIn(entry);
    if (range) return [range];
    const expected = 'port number from 1 to 65535, or a range such as "3000-3010"';
    note([index], `${JSON.stringify(entry)} is not a port`, { expected });
    return [];
  });
  return mergePortRanges(ranges).map(([first, last]) => (first === last ? first : `${first}-${last}`));
};

function rangeIn(entry: JsonValue): [number, number] | undefined {
  const isForm = typeof entry === 'number' || (typeof entry === 'string' && /^\d{1,5}(?:-\d{1,5})?$/.test(entry));
  if (!isForm) return undefined;
  const [first, last] = portRange(entry);
  return Number.isInteger(first) && first >= 1 && first <= last && last <= 65_535 ? [first, last] : undefined;
}

export const readPause: ReadValue = (value, note) => {
  const { min = 0, max = 0 } = fieldAt('machine.pauseAfterMinutes') ?? {};
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  note([], 'pauseAfterMinutes is not a number of minutes', { expected: `integer from ${min} to ${max}` });
  return undefined;
};
