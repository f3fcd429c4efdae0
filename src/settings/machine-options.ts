import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { MachineField } from './field.ts';
import { pointerTo } from './leaf-paths.ts';
import {
  DEFAULT_MACHINE_OPTIONS,
  MACHINE_FIELDS,
  type MachineOptionPath,
  type MachineOptions,
} from './machine-options.gen.ts';
import { nearest } from './nearest.ts';

/**
 * The `machine` block of a profile: settings of ours, which the compatible application does not have. They are stored with the desired
 * state, and are in no settings document and no deployment profile.
 */

export type MountMode = MachineOptions['mounts'][string];

/** A part of the block, as a profile mentions it; `null` removes a mount. */
export type PartialMachineOptions = {
  mounts?: Record<string, MountMode | null>;
  hostPorts?: MachineOptions['hostPorts'];
  pauseAfterMinutes?: number;
};

/** A mistake in the block. `pointer` is relative to it. */
export interface MachineProblem {
  pointer: string;
  message: string;
  expected?: string;
  suggestion?: string;
  /** The mistake is in the name. */
  part?: 'key';
}

/** Reads a block in canonical form. Members with a problem are left out. */
export function readMachineOptions(value: JsonValue): { options: PartialMachineOptions; problems: MachineProblem[] } {
  if (!isObject(value)) {
    return { options: {}, problems: [{ pointer: '', message: 'machine must be a mapping', expected: 'object' }] };
  }
  const problems = unknownMembers(value);
  const options: PartialMachineOptions = {};
  if (value.mounts !== undefined) options.mounts = mountsIn(value.mounts, problems);
  if (value.hostPorts !== undefined) options.hostPorts = portsIn(value.hostPorts, problems);
  const { pauseAfterMinutes } = value;
  if (pauseAfterMinutes !== undefined) {
    const field = fieldOf('machine.pauseAfterMinutes');
    if (isWithin(pauseAfterMinutes, field)) options.pauseAfterMinutes = pauseAfterMinutes;
    else {
      const expected = `integer from ${field.min} to ${field.max}`;
      problems.push({
        pointer: '/pauseAfterMinutes',
        message: 'pauseAfterMinutes is not a number of minutes',
        expected,
      });
    }
  }
  return { options, problems };
}

/** Complete options from a stored block, or undefined when it is damaged. */
export function storedMachineOptions(value: JsonValue): MachineOptions | undefined {
  const { options, problems } = readMachineOptions(value);
  return problems.length === 0 ? mergeMachineOptions(DEFAULT_MACHINE_OPTIONS, options) : undefined;
}

/** `changes` over `options`: a map by entry, anything else as a whole. */
export function mergeMachineOptions(options: MachineOptions, changes: PartialMachineOptions): MachineOptions {
  const entries = Object.entries({ ...options.mounts, ...changes.mounts });
  return {
    mounts: Object.fromEntries(entries.flatMap(([path, mode]) => (mode === null ? [] : [[path, mode]]))),
    hostPorts: changes.hostPorts ?? options.hostPorts,
    pauseAfterMinutes: changes.pauseAfterMinutes ?? options.pauseAfterMinutes,
  };
}

/** Merges a later part over an earlier one; unlike in complete options, a `null` stays. */
export function layerMachineOptions(
  earlier: PartialMachineOptions | undefined,
  later: PartialMachineOptions | undefined,
): PartialMachineOptions | undefined {
  if (!earlier || !later) return later ?? earlier;
  const mounts = earlier.mounts || later.mounts ? { mounts: { ...earlier.mounts, ...later.mounts } } : {};
  return { ...earlier, ...later, ...mounts };
}

/** First and last port of an entry of `hostPorts`. */
export function portRange(entry: number | string): [first: number, last: number] {
  const [first = 0, last = first] = String(entry).split('-').map(Number);
  return [first, last];
}

/** Sorted and disjoint; adjacent ranges become one. */
export function mergePortRanges(ranges: readonly (readonly [first: number, last: number])[]): [number, number][] {
  const merged: [number, number][] = [];
  for (const [first, last] of [...ranges].sort(([a], [b]) => a - b)) {
    const previous = merged.at(-1);
    if (previous && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

function fieldOf(path: MachineOptionPath): MachineField {
  const field = MACHINE_FIELDS.find((candidate) => candidate.path === path);
  if (!field) throw new Error(`${path} is not declared`);
  return field;
}

function isWithin(value: JsonValue, { min = 0, max = Number.POSITIVE_INFINITY }: MachineField): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
}

function unknownMembers(value: JsonObject): MachineProblem[] {
  const known = MACHINE_FIELDS.map(({ path }) => path.replace('machine.', ''));
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const suggestion = nearest(key, known);
      const message = `"${key}" is not a setting of the machine`;
      return { pointer: pointerTo([key]), message, part: 'key', ...(suggestion === undefined ? {} : { suggestion }) };
    });
}

function mountsIn(value: JsonValue, problems: MachineProblem[]): Record<string, MountMode | null> {
  if (!isObject(value)) {
    problems.push({
      pointer: '/mounts',
      message: 'mounts must be a mapping of directories to modes',
      expected: 'object',
    });
    return {};
  }
  const { values = [] } = fieldOf('machine.mounts');
  const expected = `${values.join(', ')}, or null to remove the entry`;
  const mounts: Record<string, MountMode | null> = {};
  for (const [name, mode] of Object.entries(value)) {
    const pointer = pointerTo(['mounts', name]);
    const path = mountPath(name);
    if (path === undefined) {
      const form = 'an absolute path, or one that begins with ~/';
      problems.push({ pointer, message: `"${name}" is not the path of a directory`, expected: form, part: 'key' });
    } else if (Object.hasOwn(mounts, path)) {
      problems.push({ pointer, message: `"${path}" is listed twice`, part: 'key' });
    } else if (mode === null || isMode(mode, values)) {
      mounts[path] = mode;
    } else {
      problems.push({ pointer, message: `${JSON.stringify(mode)} is not a mode of a mount`, expected });
    }
  }
  return mounts;
}

function isMode(value: JsonValue, values: readonly string[]): value is MountMode {
  return typeof value === 'string' && values.includes(value);
}

/** The path without doubled and trailing slashes; undefined for a relative path, and for one with `.`, `..` or control characters. */
function mountPath(name: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (!/^(?:~(?:\/|$)|\/)/.test(name) || /[\u0000-\u001f\u007f]/.test(name)) return undefined;
  const [root = '', ...names] = name.split('/');
  const parts = names.filter((part) => part !== '');
  if (parts.some((part) => part === '.' || part === '..')) return undefined;
  return root === '' && parts.length === 0 ? '/' : [root, ...parts].join('/');
}

/** The ports, sorted, with overlapping and adjacent ranges merged. */
function portsIn(value: JsonValue, problems: MachineProblem[]): MachineOptions['hostPorts'] {
  if (!Array.isArray(value)) {
    problems.push({ pointer: '/hostPorts', message: 'hostPorts must be a list of ports', expected: 'array' });
    return [];
  }
  const ranges = value.flatMap((entry, index): [number, number][] => {
    const range = rangeIn(entry);
    if (range) return [range];
    const message = `${JSON.stringify(entry)} is not a port`;
    const expected = 'port number from 1 to 65535, or a range such as "3000-3010"';
    problems.push({ pointer: `/hostPorts/${index}`, message, expected });
    return [];
  });
  return mergePortRanges(ranges).map(([first, last]) => (first === last ? first : `${first}-${last}`));
}

function rangeIn(entry: JsonValue): [number, number] | undefined {
  const isForm = typeof entry === 'number' || (typeof entry === 'string' && /^\d{1,5}(?:-\d{1,5})?$/.test(entry));
  if (!isForm) return undefined;
  const [first, last] = portRange(entry);
  return Number.isInteger(first) && first >= 1 && first <= last && last <= 65_535 ? [first, last] : undefined;
}
