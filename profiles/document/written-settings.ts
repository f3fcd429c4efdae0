import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type SettingMember, settingAt } from '../../src/settings/fields.ts';
import type { Finding } from '../../src/settings/issue.ts';
import { leafAt, leaves, pointerTo, removeLeaf } from '../../src/settings/leaf-paths.ts';
import { migrateWithOrigins, originOf } from '../../src/settings/migrate.ts';
import { copyOfObject, own } from '../../src/settings/own.ts';
import { locateInDocument, type ParsedDocument } from '../../src/settings/parse.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import { isReference } from './source.ts';

/** A setting as written in settings of some version. */
export interface WrittenSetting {
  /** Dotted path in the names of that version. */
  written: string;
  value: JsonValue;
  /** The current setting; absent for a removed one. */
  today?: { path: SettingPath; value: JsonValue };
}

/** Returns all settings of a document except its version. Unknown names are ignored. */
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

/** The `null` values in settings. */
interface Nulls {
  /** Names of settings and sections. */
  members: string[][];
  /** Names of map entries, and the values that such an entry may have. */
  entries: { names: string[]; expected: string }[];
}

export function nullsIn(settings: JsonObject, members: readonly SettingMember[]): Nulls {
  const nulls: Nulls = { members: [], entries: [] };
  walk(settings, members, [], (names, value, member) => {
    if (names.join() === 'version') return;
    if (value === null) nulls.members.push(names);
    else if (member.kind === 'setting' && member.type.startsWith('map') && isObject(value)) {
      const expected = member.type === 'map<string,boolean>' ? 'true or false' : 'a string';
      for (const [key, entry] of Object.entries(value)) {
        if (entry === null) nulls.entries.push({ names: [...names, key], expected });
      }
    }
  });
  return nulls;
}

/** A copy without the values at these names. */
export function without(settings: JsonObject, gone: readonly (readonly string[])[]): JsonObject {
  const copy = copyOfObject(settings);
  for (const names of gone) {
    let section: JsonValue | undefined = copy;
    for (const name of names.slice(0, -1)) section = isObject(section) ? own(section, name) : undefined;
    if (isObject(section)) delete section[names.at(-1) ?? ''];
  }
  return copy;
}

/** Returns a copy without references to secrets; an invalid reference stays, as a value of the wrong type. */
export function withoutReferences(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const { path, sensitive } of FIELDS) {
    if (sensitive && secretSource(leafAt(copy, path)) !== undefined) removeLeaf(copy, path);
  }
  return copy;
}

/** Returns the source that a reference to a secret names, as a phrase; undefined for any other value. */
export function secretSource(value: JsonValue | undefined): string | undefined {
  if (value === undefined || !isReference(value) || Object.keys(value).length !== 1) return undefined;
  const { fromEnv, fromFile } = value;
  if (typeof fromEnv === 'string') return `the environment variable ${JSON.stringify(fromEnv)}`;
  return typeof fromFile === 'string' ? `the file ${JSON.stringify(fromFile)}` : undefined;
}

/** Returns the settings by their paths as written. Settings of a version newer than ours are read with our names. */
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

/** Returns the dotted paths of the settings and sections that are `true` in `locked` of a profile. */
function lockedPaths(locked: JsonObject, above = ''): string[] {
  return Object.entries(locked).flatMap(([name, value]) => {
    const path = above === '' ? name : `${above}.${name}`;
    if (isObject(value)) return lockedPaths(value, path);
    return value === true ? [path] : [];
  });
}

/** Returns whether `locked` names a setting or a section around it. A removed setting cannot be locked. */
export function isLockedBy(locked: JsonObject): (setting: WrittenSetting) => boolean {
  const paths = lockedPaths(locked);
  return ({ today }) => today !== undefined && paths.some((path) => isWithin(today.path, path));
}

/** Returns the locks without effect: none of these paths, which have values, is in them. */
export function idleLocks(locked: JsonObject, paths: readonly string[]): string[] {
  return lockedPaths(locked).filter((path) => !paths.some((each) => isWithin(each, path)));
}

/** Returns the finding for a lock without effect. */
export function idleLock(path: string, document: ParsedDocument): Finding {
  const message = `${path} is locked but has no value in the settings, so the lock has no effect`;
  return locateInDocument(document, { pointer: `/locked${pointerTo(path.split('.'))}`, message }, 'key');
}

/** True for a path and everything below it. */
export function isWithin(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`);
}

/**
 * Returns the part of the settings in force that other computers can use. Secrets and settings of one computer are left out, each with a warning, and
 * settings that the platform does not have: with their values an application there would not start.
 * @param named paths that were selected individually: of these only secrets are left out.
 */
export function publicSettings(
  settings: readonly WrittenSetting[],
  named: readonly string[],
  platform: Platform,
): { settings: WrittenSetting[]; warnings: string[]; notes: string[] } {
  const warnings: string[] = [];
  const foreign: string[] = [];
  const kept = settings.filter(({ written, today }) => {
    const field = today && settingAt(today.path);
    const isNamed = field !== undefined && (named.includes(field.path) || named.includes(written));
    if (field && !isNamed && !field.platforms.includes(platform)) {
      foreign.push(written);
      return false;
    }
    const empty = today === undefined || isEmpty(today.value);
    if (field?.sensitive) {
      if (!empty) warnings.push(`${written} is a secret and was left out; use --input or --body to write it.`);
      return false;
    }
    // An empty version lets the service choose; locked, it would keep the application from choosing.
    if (field?.path === 'kubernetes.version' && empty && !isNamed) return false;
    if (!field?.machineOnly || isNamed) return true;
    if (!empty) warnings.push(`${written} is specific to this computer and was left out; --only ${written} writes it.`);
    return false;
  });
  const notes =
    foreign.length === 0
      ? []
      : [`left out, because ${PLATFORM_NAMES[platform]} does not have them: ${foreign.join(', ')}.`];
  return { settings: kept, warnings, notes };
}

function isEmpty(value: JsonValue): boolean {
  return value === '' || (isObject(value) && Object.keys(value).length === 0);
}
