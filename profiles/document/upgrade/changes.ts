import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import { PLATFORM_NAMES, PLATFORMS, type Platform } from '../../../src/settings/field.ts';
import { FIELDS } from '../../../src/settings/fields.gen.ts';
import { isSection, settingAt } from '../../../src/settings/fields.ts';
import { knownSettings, leafAt, leaves, setLeaf } from '../../../src/settings/leaf-paths.ts';
import { migrate, migrateWithOrigins, originOf } from '../../../src/settings/migrate.ts';
import { equal } from '../../../src/settings/own.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../../src/settings/settings.gen.ts';

/** A change that an upgrade makes. Paths are dotted and relative to the settings. */
export interface Change {
  /** Path in the old document. */
  from: string;
  /** Path in the new document; absent for a removed setting. */
  to?: string;
  before: JsonValue;
  /** New value; absent for a removed setting. */
  after?: JsonValue;
  reason: string;
}

/** The new name and value of each member of a map or list; undefined for a removed one. */
type Members = ReadonlyMap<string, { name: string; value: JsonValue } | undefined>;

/** The changes in document order, and the resulting settings. */
interface Upgrade {
  changes: Change[];
  /** The migrated settings, known ones only. */
  settings: JsonObject;
}

/**
 * Returns the changes from valid settings of an older version to the newest: those of `migrate`, and the removal of settings that releases left in
 * their files and nothing reads.
 */
export function upgradeOf(settings: JsonObject, platform: Platform): Upgrade {
  const { document, origins } = migrateWithOrigins(settings, { platform, partial: true });
  const known = knownSettings(document);
  const destinations = new Map(leaves(known).map(([path]) => [originOf(origins, path), path]));
  const version = typeof settings.version === 'number' ? settings.version : 0;
  const changes = [...walk(settings, '', destinations)].flatMap(({ path, value }): Change[] => {
    const to = destinations.get(path);
    const about = { from: path, before: value, version, platform };
    if (to === undefined) return [{ from: path, before: value, reason: reasonOf(about) }];
    const after = leafAt(known, to) ?? null;
    if (to === path && equal(value, after)) return [];
    return [{ from: path, to, before: value, after, reason: reasonOf({ ...about, to, after }) }];
  });
  return { changes, settings: known };
}

/** Returns the settings whose migrated value depends on the platform. */
export function platformDependent(settings: JsonObject): SettingPath[] {
  const results = PLATFORMS.map((platform) => migrate(settings, { platform, partial: true }));
  return FIELDS.flatMap(({ path }) => {
    const [first, ...others] = results.map((result) => leafAt(result, path) ?? null);
    return others.every((other) => equal(other, first)) ? [] : [path];
  });
}

/** Returns the new form of each member of a map or list, found by migrating each alone. The last of several with one name counts. */
export function membersOf({ from, to, before }: Change, version: number, platform: Platform): Members {
  const members = new Map<string, { name: string; value: JsonValue } | undefined>();
  const taken = new Map<string, string>();
  const list = Array.isArray(before);
  for (const [name, value] of Object.entries(isObject(before) || list ? before : {})) {
    const document: JsonObject = { version };
    setLeaf(document, from, list ? [value] : { [name]: value });
    const result = leafAt(migrate(document, { platform, partial: true }), to ?? from) ?? null;
    const [became] = Object.entries(isObject(result) || Array.isArray(result) ? result : {});
    const earlier = became && !list ? taken.get(became[0]) : undefined;
    if (earlier !== undefined) members.set(earlier, undefined);
    if (became && !list) taken.set(became[0], name);
    members.set(name, became && { name: list ? name : became[0], value: became[1] });
  }
  return members;
}

/** Yields the settings of a document, and empty sections that no longer exist, in document order. */
function* walk(
  object: JsonObject,
  prefix: string,
  destinations: ReadonlyMap<string, SettingPath>,
): Generator<{ path: string; value: JsonValue }> {
  for (const [name, value] of Object.entries(object)) {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const section = isObject(value) && !destinations.has(path);
    if (section && Object.keys(value).length > 0) yield* walk(value, path, destinations);
    else if (!section || !isSection(path)) yield { path, value };
  }
}

/** The version of an upgraded document. */
export const NEWEST = SCHEMA_VERSION;

interface ChangeContext {
  from: string;
  to?: string;
  before: JsonValue;
  after?: JsonValue;
  version: number;
  platform: Platform;
}

/** Reasons of removals, by the last name of the setting. */
const REMOVAL_REASONS: Readonly<Record<string, string>> = {
  rancherMode: 'has not existed since settings version 2',
  checkForExistingKimBuilder: 'has not existed since settings version 5',
  experimentalHostResolver: 'has not existed since before settings version 5, and has no successor',
  hostResolver: 'has not existed since settings version 14',
  socketVMNet: 'has not existed since settings version 12',
  networkingTunnel: 'has not existed since settings version 14',
  locked: 'has not existed since settings version 6: locked deployment profiles determine what is locked',
  msizeInKB: 'became msizeInKib in settings version 8, and no release migrated the value',
};

/** Returns the reason of a change, as a phrase. */
function reasonOf(about: ChangeContext): string {
  const { from, to, version } = about;
  if (from === 'version') return `version ${version} is upgraded to the newest`;
  if (to === undefined) return removalReason(about);
  const changed = valueReason(about);
  if (from === to) return changed ?? 'is written differently now';
  const since = settingAt(to)?.since;
  const moved = since === undefined ? 'moved' : `moved in settings version ${since}`;
  return changed === undefined ? moved : `${moved}; ${changed}`;
}

function removalReason({ from, before }: ChangeContext): string {
  const known = REMOVAL_REASONS[from.slice(from.lastIndexOf('.') + 1)];
  if (known !== undefined) return known;
  return isObject(before) && Object.keys(before).length === 0
    ? 'was an empty section that no longer exists'
    : 'does not exist in the newest version';
}

function valueReason({ from, to, before, after, version, platform }: ChangeContext): string | undefined {
  if (typeof before === 'boolean' && before !== after) return 'its meaning was inverted then';
  if (before === 'notset') {
    return `"notset" was removed in settings version 8; on ${PLATFORM_NAMES[platform]} it meant ${String(after)}`;
  }
  if (Array.isArray(before) && Array.isArray(after) && JSON.stringify(before) !== JSON.stringify(after)) {
    return 'since settings version 10, spaces around entries and empty entries are removed';
  }
  if (to === 'application.extensions.installed' && from === 'extensions' && version <= 6) {
    return 'since settings version 7, the value of an extension is its tag; disabled ones are left out';
  }
  return undefined;
}
