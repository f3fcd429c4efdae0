import { isObject, type JsonObject } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { isSection } from './fields.ts';
import { leafAt, pointerNames, pointerTo, removeLeaf, setLeaf } from './leaf-paths.ts';
import { migrateWithOrigins, namesBefore, originOf } from './migrate.ts';
import { PAST } from './past.gen.ts';
import { unknownKeys } from './unknown-keys.ts';

/**
 * Settings that were removed without a successor, or whose values releases left in files that they upgraded. They
 * appear in documents that used to be valid, and are ignored.
 */
export const REMOVED_SETTINGS: readonly string[] = PAST.filter(({ now, dropped }) => now === undefined || dropped).map(
  ({ path }) => path,
);

/**
 * Returns the pointers of values in an older document that its migration drops: a version's shape also covers later
 * ones, whose migration no longer moves them.
 */
export function droppedPointers(document: JsonObject): string[] {
  const { document: migrated, origins } = migrateWithOrigins(document, { platform: 'linux', partial: true });
  return unknownKeys(withoutEnded(migrated), Number.POSITIVE_INFINITY).map(({ pointer }) =>
    pointerTo(namesBefore(origins, pointerNames(pointer))),
  );
}

/** Returns the setting that was at this path before `version`. */
export function laterPlace(path: string, version: number): string | undefined {
  for (let earlier = version - 1; earlier >= 1; earlier--) {
    const document: JsonObject = { version: earlier };
    setLeaf(document, path, true);
    const { document: migrated, origins } = migrateWithOrigins(document, { platform: 'linux', partial: true });
    const moved = FIELDS.find((field) => field.path !== 'version' && leafAt(migrated, field.path) !== undefined);
    if (moved && moved.since <= version && originOf(origins, moved.path) === path) return moved.path;
  }
  return undefined;
}

/** Removes `REMOVED_SETTINGS` from its argument in place. A section left empty is removed too, unless it still exists today. */
function withoutEnded(migrated: JsonObject): JsonObject {
  for (const path of REMOVED_SETTINGS) {
    removeLeaf(migrated, path);
    for (let above = sectionOf(path); above !== '' && !isSection(above); above = sectionOf(above)) {
      const section = leafAt(migrated, above);
      if (isObject(section) && Object.keys(section).length === 0) removeLeaf(migrated, above);
    }
  }
  return migrated;
}

function sectionOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.')));
}
