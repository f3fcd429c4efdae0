import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { own, put } from '../../src/settings/own.ts';
import { ATLAS, type AtlasNode, type Place, type Section } from './atlas.ts';
import { NO_NULL_IN_REGISTRY } from './holding.ts';
import { type Entry, type Reading, unknownName, WANTED, wrongType } from './reading.ts';

/**
 * As Windows reads the registry: letter case does not count, numbers and booleans are both `REG_DWORD`, a text may stand for a
 * list of one, and sub-keys mean nothing where a list or an entry of a map belongs (tool facts, 8.4 and 8.5). What the registry
 * cannot hold at all is left to `holding.ts`; of that, `null` alone is a fault here as well.
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
      const reason = `letter case does not count in the registry, and "${node.name}" is there too`;
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
    const fault = { effect: 'ignored', reason: 'a registry key where a list belongs means nothing' } as const;
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

/** The map with what the registry gives back, and a fault for each entry that it does not. */
function mapEntries(place: Place, names: readonly string[], map: JsonObject): Entry[] {
  const read: JsonObject = {};
  const faults: Entry[] = [];
  for (const [key, value] of Object.entries(map)) {
    const at = [...names, key];
    if (typeof value === 'boolean' || typeof value === 'string') put(read, key, value);
    else if (value === 0 || value === 1) put(read, key, value === 1);
    else if (isObject(value)) {
      const fault = { effect: 'ignored', reason: 'of a map only direct values are read' } as const;
      faults.push({ place, names: at, value, fault });
    } else if (value !== null) {
      faults.push({ place, names: at, value, fault: wrongType('a text, or 0 or 1', value) });
    }
  }
  return [...faults, { place, names, value: read }];
}

function wrong(place: Place, names: readonly string[], value: JsonValue): Entry {
  return { place, names, value, fault: wrongType(WANTED[place.type], value) };
}
