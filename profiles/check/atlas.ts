import type { JsonValue } from '../../src/json.ts';
import { placeAt } from '../../src/settings/downgrade.ts';
import {
  type FieldType,
  PLATFORM_NAMES,
  PLATFORMS,
  type Platform,
  type SettingField,
} from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { PAST } from '../../src/settings/past.gen.ts';
import { defaultIn, firstReleaseWith, RELEASES, type Release, releaseIndex } from '../../src/settings/releases.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';

/**
 * A path at which some release had a setting. `first` and `last` are indexes in `RELEASES`; `last` is -1 for a path that only earlier releases had.
 */
export interface Place {
  path: string;
  names: readonly string[];
  first: number;
  last: number;
  type: FieldType;
  /** The setting of today that is or was at this path; absent for one that was removed. */
  field?: SettingField;
}

/** A section of settings. It exists in every release that has any of its members. */
export interface Section {
  path: string;
  first: number;
  last: number;
  members: ReadonlyMap<string, AtlasNode>;
  /** Members by lower-case name, for the registry. */
  folded: ReadonlyMap<string, AtlasNode>;
}
export type AtlasNode = { name: string } & ({ place: Place } | { section: Section });

const NEWEST = RELEASES.length - 1;

/** Every path of every release as one tree, without `version`. */
export const ATLAS: Section = sectionOf('', allPlaces());

/** Returns the place at which a release has the setting of another place; undefined if the release lacks it. */
function placeIn(place: Place, release: number): Place | undefined {
  const others = place.field ? (PLACES_OF.get(place.field.path) ?? []) : [];
  return others.find((other) => existsIn(other, release));
}

export function existsIn({ first, last }: { first: number; last: number }, release: number): boolean {
  return first <= release && release <= last;
}

function allPlaces(): Place[] {
  const today = FIELDS.filter(({ path }) => path !== 'version').map((field) =>
    placeOf(field.path, field.type, firstReleaseWith(field.path), NEWEST, field),
  );
  const moved = FIELDS.flatMap(earlierPlaces);
  // Places that no release wrote, or whose releases the settings version does not tell.
  const other = PAST.flatMap(({ path, now, from, dropped, releases }) => {
    const field = from === undefined && !dropped ? FIELDS.find((each) => each.path === now) : undefined;
    return field ? [placeOf(path, field.type, indexOf(releases?.[0]), indexOf(releases?.[1]), field)] : [];
  });
  const ended = PAST.filter(({ now, dropped }) => now === undefined || dropped).map(
    ({ path, type = 'boolean', last }) => placeOf(path, type, last === undefined ? -1 : 0, indexOf(last)),
  );
  return [...today, ...moved, ...other, ...ended];
}

function indexOf(release: string | undefined): number {
  return release === undefined ? -1 : releaseIndex(release);
}

function placeOf(path: string, type: FieldType, first: number, last: number, field?: SettingField): Place {
  // A place older than every release of the list has no first one; only its end counts.
  return { path, names: path.split('.'), first: last === -1 ? 0 : first, last, type, ...(field ? { field } : {}) };
}

function earlierPlaces(field: SettingField): Place[] {
  const found = new Map<string, { first: number; last: number }>();
  for (let version = 1; version < field.since; version++) {
    const path = placeAt(field.path, version);
    if (path !== undefined && path !== field.path && !found.has(path)) found.set(path, { first: -1, last: -1 });
  }
  for (const [index, { settingsVersion }] of RELEASES.entries()) {
    const range = found.get(placeAt(field.path, settingsVersion) ?? '');
    if (!range) continue;
    if (range.first === -1) range.first = index;
    range.last = index;
  }
  return [...found].map(([path, { first, last }]) => placeOf(path, field.type, first, last, field));
}

function sectionOf(path: string, places: readonly Place[]): Section {
  const depth = path === '' ? 0 : path.split('.').length;
  const groups = new Map<string, Place[]>();
  for (const place of places) {
    const name = place.names[depth] ?? '';
    groups.set(name, [...(groups.get(name) ?? []), place]);
  }
  const members = new Map([...groups].map(([name, below]): [string, AtlasNode] => [name, nodeOf(name, below, depth)]));
  return {
    path,
    // A version alone makes a profile, so the root section is in every release.
    first: Math.min(...places.map(({ first }) => first)),
    last: Math.max(...places.map(({ last }) => last)),
    members,
    folded: new Map([...members].map(([name, node]) => [name.toLowerCase(), node])),
  };
}

function nodeOf(name: string, places: readonly Place[], depth: number): AtlasNode {
  const [place] = places;
  if (place && place.names.length === depth + 1) return { name, place };
  const path = (place?.names ?? []).slice(0, depth + 1).join('.');
  return { name, section: sectionOf(path, places) };
}

const PLACES_OF: ReadonlyMap<string, readonly Place[]> = placesBySetting(ATLAS);

function placesBySetting(root: Section): Map<string, Place[]> {
  const found = new Map<string, Place[]>();
  const collect = (section: Section): void => {
    for (const node of section.members.values()) {
      if ('section' in node) collect(node.section);
      else if (node.place.field)
        found.set(node.place.field.path, [...(found.get(node.place.field.path) ?? []), node.place]);
    }
  };
  collect(root);
  return found;
}

/**
 * Explains why a release ignores a value at a place that other releases have. The wording is shared by as many releases as possible.
 * @param by `registry` if names are looked up before any migration.
 */
export function absence(place: Place | Section, { index }: Pick<System, 'index'>, by: 'written' | 'registry'): string {
  if (index < place.first) return beginning(place, index);
  const next = 'type' in place ? placeIn(place, index) : undefined;
  if (!next) {
    const last = RELEASES[place.last]?.name;
    return last === undefined
      ? `no release from ${RELEASES[0]?.name ?? ''} on has it`
      : `${last} was the last release with it`;
  }
  const since = RELEASES[Math.max(place.last + 1, next.first)]?.name ?? '';
  const moved = `it is ${next.path} since ${since}`;
  return by === 'registry'
    ? `${moved}, and the registry is read by the names of the release before it migrates`
    : moved;
}

function beginning(place: Place | Section, index: number): string {
  const since = `${RELEASES[place.first]?.name ?? ''} is the first release with it`;
  const before = 'type' in place ? placeIn(place, index) : undefined;
  return before ? `${since}; before, it is ${before.path}` : since;
}

/** A release on a platform, reduced to the facts that matter to a profile. */
export interface System {
  /** Index in `RELEASES`. */
  index: number;
  release: Release;
  platform: Platform;
  /** Built-in defaults by current path, on the newest systems; settings that the release lacks have none. */
  defaults: ReadonlyMap<SettingPath, JsonValue>;
  /** The reason why a setting can only have its default on this platform; settings that the platform supports have no entry. */
  elsewhere: ReadonlyMap<SettingPath, string>;
}

const SYSTEMS: readonly System[] = PLATFORMS.flatMap(systemsOn);

export function systemOf(release: string, platform: Platform): System {
  const system = SYSTEMS.find((each) => each.release.name === release && each.platform === platform);
  if (!system) throw new Error(`no release ${release}`);
  return system;
}

function systemsOn(platform: Platform): System[] {
  return RELEASES.map((release, index) => {
    const defaults = defaultsIn(release, index, platform);
    return { index, release, platform, defaults, elsewhere: elsewhere(defaults, platform) };
  });
}

function elsewhere(defaults: ReadonlyMap<SettingPath, JsonValue>, platform: Platform): Map<SettingPath, string> {
  const reasons = new Map<SettingPath, string>();
  for (const { path, platforms } of FIELDS) {
    const value = defaults.get(path);
    if (platforms.includes(platform) || value === undefined) continue;
    const names = platforms.map((each) => PLATFORM_NAMES[each]).join(' and ');
    const passes = typeof value === 'object' ? 'the default' : JSON.stringify(value);
    reasons.set(path, `${names} only; nothing but ${passes} passes elsewhere`);
  }
  return reasons;
}

function defaultsIn(release: Release, index: number, platform: Platform): ReadonlyMap<SettingPath, JsonValue> {
  const defaults = new Map<SettingPath, JsonValue>();
  const present = new Set(placesIn(index).map(({ field }) => field?.path));
  for (const { path } of FIELDS) {
    const value = present.has(path) ? defaultIn(path, release, platform) : undefined;
    if (value !== undefined) defaults.set(path, value);
  }
  return defaults;
}

function placesIn(release: number): Place[] {
  const collect = (nodes: Iterable<AtlasNode>): Place[] =>
    [...nodes].flatMap((node) => ('place' in node ? [node.place] : collect(node.section.members.values())));
  return collect(ATLAS.members.values()).filter((place) => existsIn(place, release));
}
