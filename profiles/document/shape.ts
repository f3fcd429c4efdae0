import { defined, isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { PartialBlocks } from '../../src/settings/blocks.gen.ts';
import { BLOCK_NAMES, readBlocks } from '../../src/settings/blocks.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { isSection, MANAGED_FIELDS, settingAt } from '../../src/settings/fields.ts';
import { nearest } from '../../src/settings/nearest.ts';
import type { ParsedDocument } from '../../src/settings/parse.ts';
import { pastSetting } from '../../src/settings/past.ts';
import { calledElsewhere } from '../../src/settings/unknown-keys.ts';
import { child, describe, type Report, reportUnknown, reportValue } from './report.ts';
import { type ApplyBlock, readApply, readWatch, type WatchBlock } from './watch-block.ts';

export const API_VERSION = 'rdctl/v1';
export const KIND = 'Profile';
/** The name of the port forwards in `prune`. */
export const PORT_FORWARDS = 'portForwards';
const STATES = ['started', 'stopped', 'unmanaged'] as const;

/** Desired power; `unmanaged` leaves it alone. */
export type DesiredState = (typeof STATES)[number];

/** The members that a document contains. `settings` are as written, and not checked yet. */
export interface Shape {
  form: 'settings' | 'profile';
  settings: JsonObject | undefined;
  /** Pointer of `settings` in the document. */
  settingsPointer: '' | '/settings';
  state?: DesiredState;
  prune?: string[];
  locked?: JsonObject;
  portForwards?: PortForward[];
  blocks?: PartialBlocks;
  watch?: WatchBlock;
  apply?: ApplyBlock;
  metadata: { name?: string; description?: string };
}

/** Members of a profile. */
export const PROFILE_KEYS = [
  'apiVersion',
  'kind',
  'metadata',
  'settings',
  'prune',
  'locked',
  'state',
  ...BLOCK_NAMES,
  'portForwards',
  'watch',
  'apply',
];

/** Recognizes the form, and checks everything around the settings. */
export function readShape(parsed: ParsedDocument, report: Report): Shape {
  const { value } = parsed;
  if (!isObject(value)) {
    if (value !== undefined) report('', `a profile must be a mapping, not ${describe(value)}`, { expected: 'object' });
    return { form: 'settings', settings: undefined, settingsPointer: '', metadata: {} };
  }
  if (!('apiVersion' in value || 'kind' in value || isObject(value.settings))) {
    return { form: 'settings', settings: value, settingsPointer: '', metadata: {} };
  }
  return readProfile(value, report);
}

function readProfile(value: JsonObject, report: Report): Shape {
  expectWord(value, 'apiVersion', API_VERSION, report);
  expectWord(value, 'kind', KIND, report);
  for (const key of Object.keys(value)) {
    if (PROFILE_KEYS.includes(key)) continue;
    const setting = calledElsewhere(key, value[key]);
    if (setting === undefined) reportUnknown(child('', key), key, PROFILE_KEYS, report);
    else {
      const suggestion = `settings.${setting}`;
      report(child('', key), `unknown key ${JSON.stringify(key)}`, { part: 'key', suggestion });
    }
  }
  const shape: Shape = {
    form: 'profile',
    settings: undefined,
    settingsPointer: '/settings',
    metadata: readMetadata(value.metadata, report),
  };
  if (isObject(value.settings)) shape.settings = value.settings;
  else if (value.settings === undefined)
    report('', 'settings is missing', { expected: 'settings: { version: 19, … }' });
  else report('/settings', `settings must be a mapping, not ${describe(value.settings)}`, { expected: 'object' });
  if (value.state !== undefined) {
    const state = STATES.find((word) => word === value.state);
    if (state) shape.state = state;
    else reportValue('/state', value.state, STATES, report);
  }
  if (value.prune !== undefined) shape.prune = readPrune(value.prune, report);
  if (value.locked !== undefined) shape.locked = readLocked(value.locked, report);
  const { blocks, problems } = readBlocks(value);
  shape.blocks = blocks;
  for (const { pointer, message, ...rest } of problems) report(pointer, message, rest);
  if (value.portForwards !== undefined) shape.portForwards = readPortForwards(value.portForwards, report);
  if (value.watch !== undefined) shape.watch = readWatch(value.watch, report);
  const apply = value.apply === undefined ? undefined : readApply(value.apply, report);
  if (apply) shape.apply = apply;
  return shape;
}

function expectWord(value: JsonObject, key: string, word: string, report: Report): void {
  const found = value[key];
  if (found === word) return;
  if (found === undefined) report('', `${key} is missing`, { expected: `${key}: ${word}` });
  else reportValue(child('', key), found, [word], report);
}

function readMetadata(value: JsonValue | undefined, report: Report): Shape['metadata'] {
  if (value === undefined) return {};
  if (!isObject(value)) {
    report('/metadata', `metadata must be a mapping, not ${describe(value)}`, { expected: 'object' });
    return {};
  }
  const metadata: Shape['metadata'] = {};
  for (const [key, text] of Object.entries(value)) {
    const pointer = child('/metadata', key);
    if (key !== 'name' && key !== 'description') reportUnknown(pointer, key, ['name', 'description'], report);
    else if (typeof text === 'string') metadata[key] = text;
    else report(pointer, `${key} must be text, not ${describe(text)}`, { expected: 'string' });
  }
  return metadata;
}

/** Reads `prune`. Only maps and port forwards can be exclusive: anything else is replaced as a whole. */
function readPrune(value: JsonValue, report: Report): string[] {
  if (!Array.isArray(value)) {
    report('/prune', `prune must be a list of setting paths, not ${describe(value)}`, { expected: 'array of strings' });
    return [];
  }
  const fields: string[] = MANAGED_FIELDS.filter(({ type }) => type.startsWith('map<')).map(({ path }) => path);
  const maps = [...fields, PORT_FORWARDS];
  return value.flatMap((path, index) => {
    if (typeof path === 'string' && maps.includes(path)) return [path];
    reportValue(child('/prune', index), path, maps, report);
    return [];
  });
}

/** Checks `locked`: names of settings and sections, with `true` or `false` for a setting or a whole section. */
function readLocked(value: JsonValue, report: Report): JsonObject {
  if (isObject(value)) return readLevel(value, '', '/locked', report);
  report('/locked', 'locked must be a mapping of settings to true', { expected: 'object' });
  return {};
}

function readLevel(value: JsonObject, prefix: string, pointer: string, report: Report): JsonObject {
  const result: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    const at = child(pointer, key);
    const field = settingAt(path);
    const moved = field || isSection(path) ? undefined : pastSetting(path)?.now;
    if (moved !== undefined) {
      report(at, `locked must use current setting names: ${path} is now ${moved}`, {
        part: 'key',
        suggestion: moved,
      });
    } else if (!field && !isSection(path)) {
      const suggestion = nearest(path, candidates(prefix));
      report(at, `${path} is not a setting`, { part: 'key', ...defined({ suggestion }) });
    } else if (typeof inner === 'boolean') {
      if (field && !field.lockable) report(at, `${path} cannot be locked`);
      else result[key] = inner;
    } else if (!field && isObject(inner)) {
      result[key] = readLevel(inner, path, at, report);
    } else if (field?.type.startsWith('map<') && isObject(inner)) {
      report(at, `${path} can be locked only as a whole, not by entry`, { expected: 'true or false' });
    } else {
      report(at, `a lock must be true or false`, { expected: field ? 'boolean' : 'boolean or a mapping of settings' });
    }
  }
  return result;
}

/** Returns the paths directly below `prefix`. */
function candidates(prefix: string): string[] {
  const depth = prefix === '' ? 1 : prefix.split('.').length + 1;
  const below = FIELDS.filter((field) => prefix === '' || field.path.startsWith(`${prefix}.`));
  return [...new Set(below.map((field) => field.path.split('.').slice(0, depth).join('.')))];
}

/** A cluster service to forward to a port of this computer. */
export interface PortForward {
  namespace: string;
  service: string;
  /** Number or name of the service's port. */
  k8sPort: number | string;
  /** `null` removes the forward. */
  hostPort: number | null;
}

const FORWARD_KEYS = ['namespace', 'service', 'k8sPort', 'hostPort'] as const;

/** Checks the port forwards, alone and against each other; entries with a finding are left out. */
function readPortForwards(value: JsonValue, report: Report): PortForward[] {
  if (!Array.isArray(value)) {
    report('/portForwards', `portForwards must be a list, not ${describe(value)}`, { expected: 'array' });
    return [];
  }
  const names = new Map<string, number>();
  const ports = new Map<number, number>();
  return value.flatMap((entry, index) => {
    const pointer = child('/portForwards', index);
    const forward = readForward(entry, pointer, report);
    if (!forward) return [];
    const { namespace, service, k8sPort, hostPort } = forward;
    const name = `${namespace}/${service}:${k8sPort}`;
    const twin = names.get(name);
    names.set(name, index);
    if (twin !== undefined) {
      report(pointer, `${name} is forwarded twice: see entry ${twin + 1} of the list`, {});
      return [];
    }
    const holder = hostPort === null ? undefined : ports.get(hostPort);
    if (hostPort !== null) ports.set(hostPort, index);
    if (holder !== undefined) {
      report(child(pointer, 'hostPort'), `hostPort ${hostPort} is already used by entry ${holder + 1} of the list`, {});
      return [];
    }
    return [forward];
  });
}

function readForward(entry: JsonValue, pointer: string, report: Report): PortForward | undefined {
  if (!isObject(entry)) {
    report(pointer, `a port forward must be a mapping, not ${describe(entry)}`, {
      expected: `object with ${FORWARD_KEYS.join(', ')}`,
    });
    return undefined;
  }
  for (const key of Object.keys(entry)) {
    if (!FORWARD_KEYS.some((known) => known === key)) reportUnknown(child(pointer, key), key, FORWARD_KEYS, report);
  }
  const { namespace, service, k8sPort, hostPort } = entry;
  const problems: [string, boolean, string][] = [
    ['namespace', isLabel(namespace), 'name of a namespace'],
    ['service', isLabel(service), 'name of a service'],
    ['k8sPort', isPortName(k8sPort) || isPort(k8sPort), 'port number from 1 to 65535 or port name'],
    ['hostPort', hostPort === null || isPort(hostPort), 'port number from 1 to 65535, or null to remove the forward'],
  ];
  for (const [key, good, expected] of problems) {
    const found = entry[key];
    if (good) continue;
    if (found === undefined) report(pointer, `${key} is missing`, { expected });
    else report(child(pointer, key), `${key} cannot be ${describe(found)}`, { expected });
  }
  if (!isLabel(namespace) || !isLabel(service) || (hostPort !== null && !isPort(hostPort))) return undefined;
  if (!isPortName(k8sPort) && !isPort(k8sPort)) return undefined;
  return { namespace, service, k8sPort, hostPort };
}

/** Whether a name is valid in a cluster: any other would fail only in the apply. */
function isLabel(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(value);
}

function isPortName(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^(?=[-0-9]*[a-z])[a-z0-9](?:-?[a-z0-9]){0,14}$/.test(value);
}

function isPort(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
