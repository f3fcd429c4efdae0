import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { membersOfVersion, type SettingMember } from '../settings/members.ts';
import { put } from '../settings/own.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import type { WrittenPolicy } from './policy.ts';
import { isSameName, type RegistryKey, type RegistryValue } from './registry-key.ts';

interface Reading {
  /** Path of the profile's key, for messages. */
  source: string;
  problems: string[];
  passedOver: string[];
  recognised: number;
}

/**
 * The profile in a registry key, read by the names and types that its version had (tool facts, 8.5); `undefined` for a key
 * without any value that means something. Bad values are found here and reported with the profile.
 */
export function registryPolicy(source: string, key: RegistryKey): WrittenPolicy | undefined {
  const reading: Reading = { source, problems: [], passedOver: [], recognised: 0 };
  const version = key.values.find(({ name }) => isSameName(name, 'version'))?.data;
  const members = membersOfVersion(typeof version === 'number' ? version : SCHEMA_VERSION);
  const settings = readSection(key, members, [], reading);
  if (reading.recognised === 0) return undefined;
  const { problems, passedOver } = reading;
  return {
    source,
    settings,
    nameOf: (names) => [source, ...names].join('\\'),
    quote: (json) => `'${json}'`,
    heading: 'Error in registry settings:',
    noVersion:
      `Invalid deployment: no version specified at ${source}. ` +
      `Add a version field to make it valid (current version is ${SCHEMA_VERSION}).`,
    problems,
    passedOver,
  };
}

function readSection(
  key: RegistryKey,
  members: readonly SettingMember[],
  above: readonly string[],
  reading: Reading,
): JsonObject {
  const section: JsonObject = {};
  const passOver = (name: string) => void reading.passedOver.push(pathOf(reading, [...above, name]));
  for (const value of key.values) {
    const member = find(members, value.name);
    if (!member) {
      if (!isUnnamed(value.name)) passOver(value.name);
      continue;
    }
    reading.recognised += 1;
    const read = readValue(value, member, [...above, member.name], reading);
    if (read !== undefined) put(section, member.name, read);
  }
  for (const below of key.keys) {
    const member = find(members, below.name);
    if (!member) {
      passOver(below.name);
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
  if (member.kind === 'ended') return undefined;
  if (member.type.startsWith('map')) return readMap(key, names, reading);
  // A key where a list belongs means nothing to the compatible application either.
  if (member.type === 'string[]') reading.passedOver.push(pathOf(reading, names));
  else complain(reading, names, `expecting value of type ${wordOf(member)}, got a registry object`);
  return undefined;
}

/** Of a map only the values of its own key are read. */
function readMap(key: RegistryKey, names: readonly string[], reading: Reading): JsonObject {
  const map: JsonObject = {};
  for (const { name, type, data } of key.values) {
    if (isUnnamed(name)) continue;
    reading.recognised += 1;
    if (type === 'REG_SZ' && typeof data === 'string') put(map, name, data);
    else if (isNumber(type) && (data === 0 || data === 1)) put(map, name, data === 1);
    else complain(reading, [...names, name], `expecting value of type boolean, got ${shown(type, data)}`);
  }
  return map;
}

function readValue(
  { type, data }: RegistryValue,
  member: SettingMember,
  names: readonly string[],
  reading: Reading,
): JsonValue | undefined {
  if (member.kind === 'ended') return undefined;
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
  complain(reading, names, `expecting value of type ${wordOf(member)}, got ${shown(type, data, names)}`);
  return undefined;
}

/** The value of a key itself holds nothing of ours, and `reg` writes its name in the language of the user: `(Default)`. */
function isUnnamed(name: string): boolean {
  return name === '' || /^\(.*\)$/.test(name);
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
  const secret = names.some((name) => /password/i.test(name));
  return `${kind} '${secret ? '***' : JSON.stringify(data)}'`;
}

function complain({ source, problems }: Reading, names: readonly string[], text: string): void {
  problems.push(`Error for field '${[source, ...names].join('\\')}': ${text}`);
}

function pathOf({ source }: Reading, names: readonly string[]): string {
  return [source, ...names].join('\\');
}

function find(members: readonly SettingMember[], name: string): SettingMember | undefined {
  return members.find((member) => isSameName(member.name, name));
}
