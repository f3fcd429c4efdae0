import { isObject, type JsonObject } from '../../src/json.ts';
import type { Finding } from '../../src/settings/finding.ts';
import { pointerTo } from '../../src/settings/leaf-paths.ts';
import type { ParsedDocument } from '../../src/settings/parse.ts';
import { positioned } from '../../src/settings/position.ts';
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

/**
 * The locks that hold nothing, because the settings say nothing there.
 * @param paths what the settings say, as it is called today.
 */
export function idleLocks(locked: JsonObject, paths: readonly string[]): string[] {
  return lockedPaths(locked).filter((path) => !paths.some((each) => isWithin(each, path)));
}

/** What is said of such a lock, at its place in a document. */
export function idleLock(path: string, document: ParsedDocument): Finding {
  const message = `${path} is locked, and settings say nothing of it: this would lock nothing`;
  return positioned(document, { pointer: `/locked${pointerTo(path.split('.'))}`, message }, 'key');
}

/** True for a path and everything below it. */
export function isWithin(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`);
}
