import type { JsonValue } from '../../src/json.ts';
import { PLATFORM_NAMES, PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { defaultIn, RELEASES, type Release } from '../../src/settings/releases.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import { ATLAS, type AtlasNode, isThere, type Place } from './atlas.ts';

/** A release on a platform, as far as it matters to a profile. */
export interface System {
  /** Place in `RELEASES`. */
  index: number;
  release: Release;
  platform: Platform;
  /** Built-in defaults by the paths of today, on the newest systems; settings that the release lacks have none. */
  defaults: ReadonlyMap<SettingPath, JsonValue>;
  /** Why a setting cannot be anything but its default here; settings of this platform have no entry. */
  elsewhere: ReadonlyMap<SettingPath, string>;
}

/**
 * For each release the first one that has the same settings with the same defaults: what is found out for one holds for
 * all of them.
 */
export const ALIKE: readonly number[] = alike();

const SYSTEMS: Readonly<Record<Platform, readonly System[]>> = {
  darwin: systemsOn('darwin'),
  linux: systemsOn('linux'),
  win32: systemsOn('win32'),
};

export function systemOf(index: number, platform: Platform): System | undefined {
  return SYSTEMS[platform][index];
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

function alike(): number[] {
  const signs = RELEASES.map((release, index) => {
    const defaults = PLATFORMS.map((platform) => FIELDS.map(({ path }) => defaultIn(path, release, platform)));
    return JSON.stringify([release.settingsVersion, placesIn(index).map(({ path }) => path), defaults]);
  });
  return signs.map((sign) => signs.indexOf(sign));
}

function placesIn(release: number): Place[] {
  const collect = (nodes: Iterable<AtlasNode>): Place[] =>
    [...nodes].flatMap((node) => ('place' in node ? [node.place] : collect(node.section.members.values())));
  return collect(ATLAS.members.values()).filter((place) => isThere(place, release));
}
