import { defined, isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { FieldType } from '../../src/settings/field.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { own, put } from '../../src/settings/own.ts';
import { MAX_SUGGESTIONS } from '../../src/settings/unknown-keys.ts';
import { ATLAS, type AtlasNode, type Place, type Section } from './atlas.ts';
import type { Effect } from './finding.ts';
import { NO_NULL_IN_REGISTRY } from './holding.ts';

/** A value of a profile at a place that some release has. */
interface Entry {
  place: Place | Section;
  /** Names as written. */
  names: readonly string[];
  /** Value in the type of the place; meaningless with a fault. */
  value: JsonValue;
  /** The reaction of a release with this place to the form of the value, before it looks at the meaning. */
  fault?: { effect: Effect; reason: string };
}

/** The reaction of a release to the value of a setting. */
export interface Judgement {
  effect: Effect;
  reason: string;
  suggestion?: string;
  /** Key of the entry of a map, or index of the item of a list. */
  entry?: string;
}

/** A name that no release has in its section. */
interface Unknown {
  names: readonly string[];
  reason: string;
  suggestion?: string;
}

/** A profile, read by the names of all releases. */
export interface Reading {
  entries: Entry[];
  unknown: Unknown[];
}

const NO_SETTING = 'no release has such a setting';

/**
 * Reads a file with the rules of macOS and Linux: names have their exact letter case, and values the JSON type of the default; entries of maps and
 * items of lists are not checked.
 */
export function readExactly(settings: JsonObject): Reading {
  const reading: Reading = { entries: [], unknown: [] };
  readSection(settings, ATLAS, [], reading);
  return reading;
}

function readSection(object: JsonObject, section: Section, above: readonly string[], reading: Reading): void {
  for (const name of Object.keys(object)) {
    if (above.length === 0 && name === 'version') continue;
    const node = section.members.get(name);
    const names = [...above, name];
    const value = own(object, name) ?? null;
    if (!node) reading.unknown.push(unknownName(names, section, reading));
    else if ('place' in node) reading.entries.push(exactEntry(node.place, names, value));
    else if (isObject(value)) readSection(value, node.section, names, reading);
    else reading.entries.push({ place: node.section, names, value, fault: sectionFault(value) });
  }
}

function exactEntry(place: Place, names: readonly string[], value: JsonValue): Entry {
  if (isOfType(value, place.type)) return { place, names, value };
  return { place, names, value, fault: wrongType(WANTED[place.type], value) };
}

/** Compares only the JSON type, like the application's comparison with the default. */
function isOfType(value: JsonValue, type: FieldType): boolean {
  switch (type) {
    case 'boolean':
    case 'string':
      return typeof value === type;
    case 'integer':
      return typeof value === 'number';
    case 'string[]':
      return Array.isArray(value);
    case 'map<string,boolean>':
    case 'map<string,string>':
      return isObject(value);
  }
}

function sectionFault(value: JsonValue): NonNullable<Entry['fault']> {
  if (value !== null) return wrongType('an object with settings', value);
  return { effect: 'ignored', reason: 'null for a section sets nothing, and is stored as it is' };
}

function wrongType(wanted: string, value: JsonValue): NonNullable<Entry['fault']> {
  return { effect: 'refused', reason: `expected ${wanted}, got ${kindOf(value)}` };
}

function unknownName(names: readonly string[], section: Section, { unknown }: Reading): Unknown {
  const close = unknown.length < MAX_SUGGESTIONS ? nearest(names.at(-1) ?? '', section.members.keys()) : undefined;
  return { names, reason: NO_SETTING, ...defined({ suggestion: close }) };
}

const WANTED: Readonly<Record<FieldType, string>> = {
  boolean: 'true or false',
  integer: 'a number',
  string: 'a string',
  'string[]': 'a list',
  'map<string,boolean>': 'a map',
  'map<string,string>': 'a map',
};

/** Names the type of a value, without the value, which may be a secret. */
function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return typeof value === 'string' ? 'a string' : `a ${typeof value}`;
}

/**
 * Reads the registry with the rules of Windows: letter case does not count, numbers and booleans are both `REG_DWORD`, a text may stand for a list of
 * one, and sub-keys mean nothing in place of a list or a map entry. Values that the registry cannot hold are left to `holding.ts`; of these, only
 * `null` is a fault here as well.
 */
export function readRegistry(settings: JsonObject): Reading {
  const reading: Reading = { entries: [], unknown: [] };
  readKey(settings, ATLAS, [], reading);
  return reading;
}

function readKey(object: JsonObject, section: Section, above: readonly string[], reading: Reading): void {
  for (const name of Object.keys(object)) {
    if (above.length === 0 && name === 'version') continue;
    const names = [...above, name];
    const value = own(object, name) ?? null;
    const node = section.members.get(name) ?? section.folded.get(name.toLowerCase());
    if (!node) {
      reading.unknown.push(unknownName(names, section, reading));
      continue;
    }
    if (value === null) {
      reading.entries.push({ place: placeOf(node), names, value, fault: NO_NULL });
      continue;
    }
    if (node.name !== name && Object.hasOwn(object, node.name)) {
      const reason = `the registry ignores letter case, and "${node.name}" also exists`;
      reading.entries.push({ place: placeOf(node), names, value, fault: { effect: 'ignored', reason } });
    } else if ('place' in node) reading.entries.push(...settingEntries(node.place, names, value));
    else if (isObject(value)) readKey(value, node.section, names, reading);
    else reading.entries.push({ place: node.section, names, value, fault: wrongType('a key with settings', value) });
  }
}

const NO_NULL: NonNullable<Entry['fault']> = { effect: 'refused', reason: NO_NULL_IN_REGISTRY };

function placeOf(node: AtlasNode): Place | Section {
  return 'place' in node ? node.place : node.section;
}

function settingEntries(place: Place, names: readonly string[], value: JsonValue): Entry[] {
  const { type } = place;
  if (type.startsWith('map')) {
    return isObject(value) ? mapEntries(place, names, value) : [wrong(place, names, value)];
  }
  if (type === 'string[]' && isObject(value)) {
    const fault = { effect: 'ignored', reason: 'a registry key in place of a list has no effect' } as const;
    return [{ place, names, value, fault }];
  }
  const read = plainValue(place, value);
  return [read === undefined ? wrong(place, names, value) : { place, names, value: read }];
}

function plainValue({ type }: Place, value: JsonValue): JsonValue | undefined {
  switch (type) {
    case 'boolean':
      return typeof value === 'number' ? value !== 0 : typeof value === 'boolean' ? value : undefined;
    case 'integer':
      return typeof value === 'boolean' ? Number(value) : typeof value === 'number' ? value : undefined;
    case 'string':
      return typeof value === 'string' ? value : undefined;
    default:
      if (typeof value === 'string') return [value];
      return Array.isArray(value) && value.every((entry) => typeof entry === 'string') ? value : undefined;
  }
}

/** Returns the entries of a map: the part that the registry gives back, and a fault for each entry that it does not. */
function mapEntries(place: Place, names: readonly string[], map: JsonObject): Entry[] {
  const read: JsonObject = {};
  const faults: Entry[] = [];
  for (const [key, value] of Object.entries(map)) {
    const at = [...names, key];
    if (typeof value === 'boolean' || typeof value === 'string') put(read, key, value);
    else if (value === 0 || value === 1) put(read, key, value === 1);
    else if (isObject(value)) {
      const fault = { effect: 'ignored', reason: 'only the direct values of a map are read' } as const;
      faults.push({ place, names: at, value, fault });
    } else if (value !== null) {
      faults.push({ place, names: at, value, fault: wrongType('a string, or 0 or 1', value) });
    }
  }
  return [...faults, { place, names, value: read }];
}

function wrong(place: Place, names: readonly string[], value: JsonValue): Entry {
  return { place, names, value, fault: wrongType(WANTED[place.type], value) };
}
