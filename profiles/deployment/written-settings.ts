import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, leaves, removeLeaf } from '../../src/settings/leaf-paths.ts';
import type { SettingMember } from '../../src/settings/member.ts';
import { migrateWithOrigins, originOf } from '../../src/settings/migrate.ts';
import { copyOfObject, own } from '../../src/settings/own.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import { isReference } from '../secrets.ts';

/** One setting as it is written in settings of some version. */
export interface WrittenSetting {
  /** Dotted path by the names of that version. */
  written: string;
  value: JsonValue;
  /** What it is today; absent for a setting that came to an end. */
  today?: { path: SettingPath; value: JsonValue };
}

/** Every setting in settings of a version, but the version itself. Unknown names are passed over. */
export function writtenSettings(
  settings: JsonObject,
  members: readonly SettingMember[],
  platform: Platform,
): WrittenSetting[] {
  const today = presentSettings(settings, platform);
  const found: WrittenSetting[] = [];
  walk(settings, members, [], (names, value) => {
    const written = names.join('.');
    const present = today.get(written);
    if (written !== 'version') found.push({ written, value, ...(present ? { today: present } : {}) });
  });
  return found;
}

/** What is `null` in settings. */
interface Nulls {
  /** Names of settings and sections. */
  members: string[][];
  /** Those of entries of maps, and what such an entry may be. */
  entries: { names: string[]; expected: string }[];
}

export function nullsIn(settings: JsonObject, members: readonly SettingMember[]): Nulls {
  const nulls: Nulls = { members: [], entries: [] };
  walk(settings, members, [], (names, value, member) => {
    if (names.join() === 'version') return;
    if (value === null) nulls.members.push(names);
    else if (member.kind === 'setting' && member.type.startsWith('map') && isObject(value)) {
      const expected = member.type === 'map<string,boolean>' ? 'true or false' : 'a text';
      for (const [key, entry] of Object.entries(value)) {
        if (entry === null) nulls.entries.push({ names: [...names, key], expected });
      }
    }
  });
  return nulls;
}

/** A copy without what these names lead to. */
export function without(settings: JsonObject, gone: readonly (readonly string[])[]): JsonObject {
  const copy = copyOfObject(settings);
  for (const names of gone) {
    let section: JsonValue | undefined = copy;
    for (const name of names.slice(0, -1)) section = isObject(section) ? own(section, name) : undefined;
    if (isObject(section)) delete section[names.at(-1) ?? ''];
  }
  return copy;
}

/** A copy without references to secrets; a reference with a mistake in it stays, as a value of the wrong type. */
export function withoutReferences(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const { path, sensitive } of FIELDS) {
    if (sensitive && secretSource(leafAt(copy, path)) !== undefined) removeLeaf(copy, path);
  }
  return copy;
}

/** Where a value refers to, in words; `undefined` for one that is no reference. */
export function secretSource(value: JsonValue | undefined): string | undefined {
  if (value === undefined || !isReference(value) || Object.keys(value).length !== 1) return undefined;
  const { fromEnv, fromFile } = value;
  if (typeof fromEnv === 'string') return `the environment variable ${JSON.stringify(fromEnv)}`;
  return typeof fromFile === 'string' ? `the file ${JSON.stringify(fromFile)}` : undefined;
}

/** By the paths where they were written. Settings of a version newer than ours are read by the names of ours. */
function presentSettings(settings: JsonObject, platform: Platform): Map<string, WrittenSetting['today']> {
  const { version } = settings;
  const older = typeof version === 'number' && version < SCHEMA_VERSION;
  const { document, origins } = older
    ? migrateWithOrigins(settings, { platform, partial: true })
    : { document: settings, origins: new Map<string, string>() };
  return new Map(leaves(document).map(([path, value]) => [originOf(origins, path), { path, value }]));
}

function walk(
  object: JsonObject,
  members: readonly SettingMember[],
  above: readonly string[],
  visit: (names: string[], value: JsonValue, member: SettingMember) => void,
): void {
  for (const member of members) {
    const value = own(object, member.name);
    const names = [...above, member.name];
    if (value === undefined) continue;
    if (member.kind !== 'section' || value === null) visit(names, value, member);
    else if (isObject(value)) walk(value, member.members, names, visit);
  }
}
