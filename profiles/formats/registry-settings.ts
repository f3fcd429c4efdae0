import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { membersOfVersion, type SettingMember } from '../../src/settings/members.ts';
import { validateShape } from '../../src/settings/older-shapes.ts';
import { put } from '../../src/settings/own.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { isSameName, type RegistryKey, type RegistryValue } from './registry.ts';

const MAX_QUOTE = 100;

/** A key or value of a profile that did not become a setting. */
export interface RegistryFinding {
  /** Names below the profile's key, in the spelling of the settings as far as they are known; the last one is that of the value or key. */
  names: readonly string[];
  /** Number of values in the key and below it; absent for a value. */
  values?: number;
  what:
    | /** The application refuses the profile for it. `found` shows the value, unless it is a secret. */ {
        is: 'wrong-type';
        expected: string;
        type: string;
        found: string;
      }
    | { is: 'no-setting' }
    /** The application does not read it: the default value of a key, or anything below a map. */
    | { is: 'not-read' }
    /** A removed setting with a value that it never accepted. */
    | { is: 'ended' };
}

/** The content of a profile's key, by the names and types of its version. */
export interface RegistrySettings {
  settings: JsonObject;
  /** Number of values with a meaning, even of the wrong type; with none there is no profile. */
  recognised: number;
  findings: RegistryFinding[];
}

export function registrySettings(key: RegistryKey): RegistrySettings {
  const written = key.values.find(({ name }) => isSameName(name, 'version'))?.data;
  const version = typeof written === 'number' ? written : SCHEMA_VERSION;
  const reading: Reading = { version, findings: [], recognised: 0 };
  const settings = readSection(key, membersOfVersion(version), [], reading);
  return { settings, recognised: reading.recognised, findings: reading.findings };
}

interface Reading {
  version: number;
  findings: RegistryFinding[];
  recognised: number;
}

function readSection(
  key: RegistryKey,
  members: readonly SettingMember[],
  above: readonly string[],
  reading: Reading,
): JsonObject {
  const section: JsonObject = {};
  for (const value of key.values) {
    const member = find(members, value.name);
    if (!member) {
      note(reading, [...above, value.name], value.name === '' ? 'not-read' : 'no-setting');
      continue;
    }
    reading.recognised += 1;
    const read = readValue(value, member, [...above, member.name], reading);
    if (read !== undefined) put(section, member.name, read);
  }
  for (const below of key.keys) {
    const member = find(members, below.name);
    if (!member) {
      note(reading, [...above, below.name], 'no-setting', below);
      continue;
    }
    const read = readKey(below, member, [...above, member.name], reading);
    if (read !== undefined) put(section, member.name, read);
  }
  return section;
}

function readKey(
  key: RegistryKey,
  member: SettingMember,
  names: readonly string[],
  reading: Reading,
): JsonValue | undefined {
  if (member.kind === 'section') {
    const section = readSection(key, member.members, names, reading);
    return Object.keys(section).length === 0 ? undefined : section;
  }
  if (member.kind === 'ended') {
    note(reading, names, 'ended', key);
    return undefined;
  }
  if (member.type.startsWith('map')) return readMap(key, names, reading);
  // A key where a list belongs means nothing to the compatible application either.
  if (member.type === 'string[]') note(reading, names, 'no-setting', key);
  else {
    const what = { is: 'wrong-type' as const, expected: wordOf(member), type: 'key', found: 'a registry object' };
    reading.findings.push({ names, values: valueCount(key), what });
  }
  return undefined;
}

/** Reads a map: only the values of its own key. */
function readMap(key: RegistryKey, names: readonly string[], reading: Reading): JsonObject {
  const map: JsonObject = {};
  for (const { name, type, data } of key.values) {
    const entry = [...names, name];
    if (name === '') {
      note(reading, entry, 'not-read');
      continue;
    }
    reading.recognised += 1;
    if (type === 'REG_SZ' && typeof data === 'string') put(map, name, data);
    else if (isNumber(type) && (data === 0 || data === 1)) put(map, name, data === 1);
    else {
      const what = { is: 'wrong-type' as const, expected: 'boolean', type, found: shown(type, data) };
      reading.findings.push({ names: entry, what });
    }
  }
  for (const below of key.keys) note(reading, [...names, below.name], 'not-read', below);
  return map;
}

function readValue(
  { type, data }: RegistryValue,
  member: SettingMember,
  names: readonly string[],
  reading: Reading,
): JsonValue | undefined {
  if (member.kind === 'ended') {
    const ended = endedValue({ type, data }, names, reading.version);
    if (ended === undefined) note(reading, names, 'ended');
    return ended;
  }
  if (member.kind === 'setting') {
    switch (member.type) {
      case 'string':
        if (type === 'REG_SZ' && typeof data === 'string') return data;
        break;
      case 'boolean':
        if (isNumber(type) && typeof data === 'number') return data !== 0;
        break;
      case 'integer':
        if (isNumber(type) && typeof data === 'number') return data;
        break;
      case 'string[]':
        if (type === 'REG_SZ' && typeof data === 'string') return [data];
        if (type === 'REG_MULTI_SZ' && Array.isArray(data)) return data;
        break;
      case 'map<string,boolean>':
      case 'map<string,string>':
        break;
    }
  }
  const what = { is: 'wrong-type' as const, expected: wordOf(member), type, found: shown(type, data, names) };
  reading.findings.push({ names, what });
  return undefined;
}

/** Returns the reading that the shape of its version accepts, or the plain value if it accepts none. */
function endedValue(
  { type, data }: Omit<RegistryValue, 'name'>,
  names: readonly string[],
  version: number,
): JsonValue | undefined {
  const taken = meanings(type, data).find((value) => {
    const document: JsonObject = { version };
    setLeaf(document, names.join('.'), value);
    return !validateShape(document, version).some(({ code }) => code === 'shape');
  });
  return taken ?? data;
}

function meanings(type: string, data: RegistryValue['data']): JsonValue[] {
  if (typeof data === 'number') return isNumber(type) ? [...(data <= 1 ? [data === 1] : []), data] : [];
  if (typeof data === 'string') return [data, [data]];
  return data === undefined ? [] : [data];
}

function note(
  reading: Reading,
  names: readonly string[],
  is: 'no-setting' | 'not-read' | 'ended',
  key?: RegistryKey,
): void {
  reading.findings.push({ names, ...(key ? { values: valueCount(key) } : {}), what: { is } });
}

/** Counts the values in a key and below it. */
export function valueCount({ values, keys }: RegistryKey): number {
  return keys.reduce((count, key) => count + valueCount(key), values.length);
}

function isNumber(type: string): boolean {
  return type.startsWith('REG_DWORD');
}

function wordOf(member: SettingMember): string {
  if (member.kind !== 'setting' || member.type.startsWith('map')) return 'object';
  if (member.type === 'integer') return 'number';
  return member.type === 'string[]' ? 'array' : member.type;
}

function shown(type: string, data: RegistryValue['data'], names: readonly string[] = []): string {
  if (data === undefined || isObject(data)) return `a value of type ${type}`;
  const kind = Array.isArray(data) ? 'an array' : `a ${typeof data}`;
  // A text in place of the whole proxy may be its address, including the password.
  const secret = names.some((name) => /password|^proxy$/i.test(name));
  return `${kind} '${secret ? '***' : shorten(JSON.stringify(data))}'`;
}

/** Shortens a value, which may be as long as the file. */
function shorten(text: string): string {
  return text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE)}…` : text;
}

function find(members: readonly SettingMember[], name: string): SettingMember | undefined {
  return members.find((member) => isSameName(member.name, name));
}
