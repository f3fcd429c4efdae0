import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { fieldAt, type SettingMember } from '../../src/settings/fields.ts';
import type { Finding } from '../../src/settings/issue.ts';
import { leafAt, leaves, pointerTo, removeLeaf } from '../../src/settings/leaf-paths.ts';
import { migrateWithOrigins, originOf } from '../../src/settings/migrate.ts';
import { copyOfObject, own } from '../../src/settings/own.ts';
import { type ParsedDocument, positioned } from '../../src/settings/parse.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import { isReference } from './source.ts';

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
      const expected = member.type === 'map<string,boolean>' ? 'true or false' : 'a string';
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

/** Dotted paths of the settings and sections at which `locked` of a profile says `true`. */
function lockedPaths(locked: JsonObject, above = ''): string[] {
  return Object.entries(locked).flatMap(([name, value]) => {
    const path = above === '' ? name : `${above}.${name}`;
    if (isObject(value)) return lockedPaths(value, path);
    return value === true ? [path] : [];
  });
}

/** True when `locked` names the setting or a section around it. What came to an end cannot be locked. */
export function isLockedBy(locked: JsonObject): (setting: WrittenSetting) => boolean {
  const paths = lockedPaths(locked);
  return ({ today }) => today !== undefined && paths.some((path) => isWithin(today.path, path));
}

/**
 * The locks that hold nothing, because the settings say nothing there.
 * @param paths what the settings say, as it is called today.
 */
export function idleLocks(locked: JsonObject, paths: readonly string[]): string[] {
  return lockedPaths(locked).filter((path) => !paths.some((each) => isWithin(each, path)));
}

/** What is said of such a lock, at its place in a document. */
export function idleLock(path: string, document: ParsedDocument): Finding {
  const message = `${path} is locked but has no value in the settings, so the lock has no effect`;
  return positioned(document, { pointer: `/locked${pointerTo(path.split('.'))}`, message }, 'key');
}

/** True for a path and everything below it. */
export function isWithin(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`);
}

/**
 * Of settings in force, what may go to other computers: neither secrets nor what describes one computer, of which a warning names
 * each that said something, nor settings that the computers do not have. The values of such a setting come from the system where
 * they are in force, and would keep the application there from starting.
 * @param named paths that were asked for one by one: only a secret is left out then.
 */
export function publicSettings(
  settings: readonly WrittenSetting[],
  named: readonly string[],
  platform: Platform,
): { settings: WrittenSetting[]; warnings: string[]; notes: string[] } {
  const warnings: string[] = [];
  const foreign: string[] = [];
  const kept = settings.filter(({ written, today }) => {
    const field = today && fieldAt(today.path);
    const asked = field !== undefined && (named.includes(field.path) || named.includes(written));
    if (field && !asked && !field.platforms.includes(platform)) {
      foreign.push(written);
      return false;
    }
    const empty = today === undefined || saysNothing(today.value);
    if (field?.sensitive) {
      if (!empty) warnings.push(`${written} is a secret and was left out; use --input or --body to write it.`);
      return false;
    }
    // Empty, it says that the service chose; as a lock it would keep the application from choosing.
    if (field?.path === 'kubernetes.version' && empty && !asked) return false;
    if (!field?.machineOnly || asked) return true;
    if (!empty) warnings.push(`${written} is specific to this computer and was left out; --only ${written} writes it.`);
    return false;
  });
  const notes =
    foreign.length === 0
      ? []
      : [`left out, because ${PLATFORM_NAMES[platform]} does not have them: ${foreign.join(', ')}.`];
  return { settings: kept, warnings, notes };
}

function saysNothing(value: JsonValue): boolean {
  return value === '' || (isObject(value) && Object.keys(value).length === 0);
}
