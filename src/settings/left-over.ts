import { isObject, type JsonObject } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { isSection } from './fields.ts';
import { leafAt, pointerNames, pointerTo, removeLeaf, setLeaf } from './leaf-paths.ts';
import { migrateWithOrigins, namesBefore, originOf } from './migrate.ts';
import { unknownKeys } from './unknown-keys.ts';

/**
 * Settings that ended without a successor, and what releases left in the files that they upgraded (settings facts, 1.3 and
 * 1.5). They stand in documents that were right once and mean nothing today: passing over them is all that can be done.
 */
export const ENDED: readonly string[] = [
  'kubernetes.rancherMode',
  'kubernetes.checkForExistingKimBuilder',
  'kubernetes.experimentalHostResolver',
  'kubernetes.hostResolver',
  'kubernetes.experimental.socketVMNet',
  'containerEngine.imageAllowList.locked',
  'containerEngine.allowedImages.locked',
  'virtualMachine.hostResolver',
  'virtualMachine.experimental.socketVMNet',
  'experimental.virtualMachine.socketVMNet',
  'experimental.virtualMachine.networkingTunnel',
  'experimental.virtualMachine.mount.9p.msizeInKB',
];

/**
 * Pointers of what a document of an older version says and its migration does not take: the shape of a version also stands for
 * later ones, whose migration no longer looks there. It would be dropped without a word.
 */
export function leftOver(document: JsonObject): string[] {
  const { document: migrated, origins } = migrateWithOrigins(document, { platform: 'linux', partial: true });
  return unknownKeys(withoutEnded(migrated), Number.POSITIVE_INFINITY).map(({ pointer }) =>
    pointerTo(namesBefore(origins, pointerNames(pointer))),
  );
}

/** The setting that was at this path before `version`. */
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

/** Changes its argument. A section that held nothing else goes too, unless it is one of today. */
function withoutEnded(migrated: JsonObject): JsonObject {
  for (const path of ENDED) {
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
