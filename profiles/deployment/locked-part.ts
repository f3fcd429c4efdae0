import { isObject, type JsonObject } from '../../src/json.ts';
import type { WrittenSetting } from './written-settings.ts';

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

/** The locks that hold nothing, because the settings say nothing there. */
export function idleLocks(locked: JsonObject, settings: readonly WrittenSetting[]): string[] {
  return lockedPaths(locked).filter((path) => !settings.some(({ today }) => today && isWithin(today.path, path)));
}

/** True for a path and everything below it. */
export function isWithin(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`);
}
