import { defined, isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { splitTag } from '../../src/settings/image-reference.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { migrateWithOrigins, namesBefore } from '../../src/settings/migrate.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import type { Part } from '../formats/format.ts';
import { entryPath } from '../formats/tree.ts';
import { absence, existsIn, type System } from './atlas.ts';
import { type CheckFinding, type CheckPart, type Effect, findingKey } from './finding.ts';
import { type Holding, holdingOf } from './holding.ts';
import { type Reading, readExactly, readRegistry } from './reading.ts';
import { judgeValue, lockedVersionReason, unusableVersionReason, type Values, versionFault } from './values.ts';

const VERSION = ['version'];

/** Returns a checker of one part for any number of systems; facts that do not depend on the system are determined once. */
export function partChecker({ part, settings }: CheckPart): (system: System) => CheckFinding[] {
  const exact = readExactly(settings);
  const registry = readRegistry(settings);
  const holding = holdingOf(settings);
  return (system) => {
    const check: PartCheck = { part, settings, system, found: new Map() };
    judgePart(check, system.platform === 'win32' ? registry : exact, holding);
    return [...check.found.values()];
  };
}

function judgePart(check: PartCheck, reading: Reading, holding: Holding): void {
  const { settings, system } = check;
  const windows = system.platform === 'win32';
  const means = reading.entries.some(({ place, value }) => value !== null && existsIn(place, system.index));
  if (windows && settings.version === undefined && !means) {
    report(check, 'ignored', VERSION, 'a key without any known value does not count as a profile');
    return;
  }
  const fault = versionFault(settings.version, system);
  if (fault) report(check, fault.effect, VERSION, fault.reason);
  if (fault?.end) return;
  reportUnholdable(check, holding);
  if (!isOlder(settings.version, system)) judge(check, reading, settings);
  else if (windows) judgeRegistry(check, reading);
  else {
    const after = migrationOf(settings, check);
    // Windows loses values at older places; elsewhere, the file must hold them, so that they can move to their new places.
    reportUnholdable(check, holdingOf(after.document), after.written);
    judgeMigrated(check, reading, after);
  }
}

/** The check of one part for one system. */
interface PartCheck extends CheckPart {
  system: System;
  /** Each finding once, in the order of detection. */
  found: Map<string, CheckFinding>;
}

/** Settings at the version of a release, and their names before the migration. */
interface Migrated {
  reading: Reading;
  document: JsonObject;
  written(names: readonly string[]): readonly string[];
  /** Places before the migration of values that it moves. */
  moved: ReadonlySet<string>;
  /** Places of the release whose values are replaced by those from older places. */
  replaced: readonly string[];
}

/** Whether a release migrates settings of this version. A fractional version passes for an older one, but no step of a migration begins at it. */
function isOlder(version: JsonValue | undefined, { release }: System): version is number {
  return typeof version === 'number' && Number.isInteger(version) && version < release.settingsVersion;
}

function report(check: PartCheck, effect: Effect, names: readonly string[], reason: string, suggestion?: string): void {
  const path = names.reduce(entryPath, '');
  const finding = {
    part: check.part,
    path,
    names,
    effect,
    reason,
    ...defined({ suggestion }),
  };
  const key = findingKey(finding);
  if (!check.found.has(key)) check.found.set(key, finding);
}

function reportUnholdable(check: PartCheck, holding: Holding, written: Migrated['written'] = same): void {
  for (const { place, names, reason } of holding[check.system.platform]) {
    if (existsIn(place, check.system.index)) report(check, 'refused', written(names), reason);
  }
}

/** Migrates settings of an older version like a release, which does so before it validates them. */
function migrationOf(settings: JsonObject, { part, system }: Circumstances): Migrated {
  const { document, origins } = migrateWithOrigins(settings, {
    platform: system.platform,
    locked: part === 'locked',
    target: system.release.settingsVersion,
  });
  const all = [...origins];
  return {
    document,
    reading: readExactly(document),
    written: origins.size === 0 ? same : (names) => namesBefore(origins, names),
    moved: new Set(all.flatMap(([to, from]) => (leafAt(document, to) === undefined ? [] : [from]))),
    replaced: all.flatMap(([to, from]) => (to !== from && leafAt(settings, to) !== undefined ? [to] : [])),
  };
}

function same(names: readonly string[]): readonly string[] {
  return names;
}

function judgeMigrated(check: PartCheck, before: Reading, after: Migrated): void {
  const { document, reading, written, moved, replaced } = after;
  reportEnded(check, before, moved);
  for (const path of replaced) report(check, 'ignored', path.split('.'), 'the value at its older path replaces it');
  for (const { effect, names, reason } of [
    ...additions(check, check.settings),
    ...replacements(check, check.settings),
  ]) {
    report(check, effect, names, reason);
  }
  judge(check, reading, document, written);
}

/** Reports values that a migration removes, or hides by replacing them with a section: they are in nothing that is read afterwards. */
function reportEnded(check: PartCheck, { entries }: Reading, moved: Migrated['moved']): void {
  const { system } = check;
  for (const { place, names, fault, value } of entries) {
    const there = existsIn(place, system.index);
    const ended = !there && 'type' in place && !place.field && !moved.has(place.path);
    if (ended) report(check, 'ignored', names, absence(place, system, 'written'));
    const hidden = there && 'members' in place && fault && (value !== null || system.platform === 'linux');
    if (hidden) report(check, fault.effect, names, fault.reason);
  }
}

/**
 * Checks a profile for Windows. A release reads the registry by its own names and then migrates the result, so values at older places are lost
 * before.
 */
function judgeRegistry(check: PartCheck, reading: Reading): void {
  const { system, settings } = check;
  const kept: JsonObject = { version: settings.version ?? null };
  const names = new Map<string, string>();
  for (const entry of reading.entries) {
    const { place, fault, value } = entry;
    if (!existsIn(place, system.index)) report(check, 'ignored', entry.names, absence(place, system, 'registry'));
    else if (fault) report(check, fault.effect, entry.names, fault.reason);
    else {
      setLeaf(kept, place.path, value);
      const name = entry.names.join('.');
      if (name !== place.path) names.set(place.path, name);
    }
  }
  reportUnknown(check, reading, same);
  for (const { effect, names: at, reason } of [...additions(check, kept), ...replacements(check, kept)]) {
    report(check, effect, at, reason);
  }
  const { document, reading: after, written } = migrationOf(kept, check);
  judge(check, after, document, names.size === 0 ? written : (at) => namesBefore(names, written(at)));
}

function judge(
  check: PartCheck,
  reading: Reading,
  document: JsonObject,
  written: (names: readonly string[]) => readonly string[] = same,
): void {
  const { system } = check;
  reportUnknown(check, reading, written);
  const values = (path: SettingPath) =>
    reading.entries.find(
      ({ place, fault }) =>
        'field' in place && place.field?.path === path && fault === undefined && existsIn(place, system.index),
    )?.value;
  for (const entry of reading.entries) {
    const { place, fault, names, value } = entry;
    if (!existsIn(place, system.index)) {
      report(check, 'ignored', written(names), absence(place, system, 'written'));
    } else if (fault) {
      // Elsewhere, the storage has no null, which is reported already.
      if (value !== null || system.platform === 'linux') report(check, fault.effect, written(names), fault.reason);
    } else if ('field' in place && place.field) {
      for (const { effect, reason, suggestion, entry: key } of judgeValue(value, place.field, values, system)) {
        report(check, effect, written(key === undefined ? names : [...names, key]), reason, suggestion);
      }
    }
  }
  reportKubernetes(check, values, document);
}

function reportUnknown(
  check: PartCheck,
  { unknown }: Reading,
  written: (names: readonly string[]) => readonly string[],
) {
  for (const { names, reason, suggestion } of unknown) report(check, 'ignored', written(names), reason, suggestion);
}

function reportKubernetes(check: PartCheck, values: Values, document: JsonObject): void {
  const version = values('kubernetes.version');
  if (typeof version !== 'string') return;
  const names = ['kubernetes', 'version'];
  if (check.part === 'defaults') {
    const reason = unusableVersionReason(version);
    if (reason !== undefined) report(check, 'changed', names, reason);
    return;
  }
  const reason = leafAt(document, 'kubernetes.enabled') === false ? undefined : lockedVersionReason(version);
  if (reason !== undefined) report(check, 'refused', names, reason);
}

interface Circumstances {
  part: Part;
  system: System;
}

interface MigrationEffect {
  effect: Effect;
  names: readonly string[];
  reason: string;
}

const WEB_ASSEMBLY = 'experimental.containerEngine.webAssembly.enabled';
const STORAGE_DRIVER = 'containerEngine.mobyStorageDriver';
const TUNNEL = 'experimental.virtualMachine.networkingTunnel';

/** Returns the values that the migration to the version of a release adds to an older profile without them. */
function additions({ part, system }: Circumstances, settings: JsonObject): MigrationEffect[] {
  const version = Number(settings.version);
  const { settingsVersion } = system.release;
  const passes = (step: number) => version <= step && settingsVersion > step;
  const found: MigrationEffect[] = [];
  const add = (path: string, reason: string) => found.push({ effect: 'changed', names: path.split('.'), reason });
  if (part === 'locked' && passes(10) && leafAt(settings, WEB_ASSEMBLY) === undefined) {
    add(WEB_ASSEMBLY, 'it is locked to false by a profile of version 10 or lower that does not set it');
  }
  // The step after the next removes it again.
  if (passes(12) && settingsVersion === 13 && leafAt(settings, TUNNEL) !== true) {
    add(TUNNEL, 'it becomes true with a profile of version 12 or lower, regardless of its value');
  }
  if (part === 'defaults' && passes(16) && leafAt(settings, STORAGE_DRIVER) === undefined) {
    add(STORAGE_DRIVER, 'it becomes "auto" with a profile of version 16 or lower that does not set it');
  }
  return found;
}

/** Returns the values that the migration replaces, beyond moving them. */
function replacements({ system }: Circumstances, settings: JsonObject): MigrationEffect[] {
  const version = Number(settings.version);
  const { settingsVersion } = system.release;
  if (version > 7 || settingsVersion < 7) return [];
  const found: MigrationEffect[] = [];
  for (const path of ['application.pathManagementStrategy', 'pathManagementStrategy']) {
    if (leafAt(settings, path) !== 'notset') continue;
    const strategy = system.platform === 'win32' ? 'manual' : 'rcfiles';
    found.push({ effect: 'changed', names: path.split('.'), reason: `"notset" becomes "${strategy}"` });
  }
  const extensions = version <= 6 ? leafAt(settings, 'extensions') : undefined;
  if (isObject(extensions)) found.push(...Object.entries(extensions).flatMap(withPort));
  return found;
}

/** Returns the change of a reference with a port: every release up to the newest splits it at its first colon. */
function withPort([reference, wanted]: [string, unknown]): MigrationEffect[] {
  if (!wanted || !splitTag(reference).name.includes(':')) return [];
  const reason = 'the migration mistakes the port of the registry for the tag of the image';
  return [{ effect: 'refused', names: ['extensions', reference], reason }];
}
