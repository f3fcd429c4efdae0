import type { JsonObject } from '../../json.ts';
import { COMPATIBLE } from '../../product.ts';
import { downgrade, missingIn, placeAt } from '../../settings/downgrade.ts';
import { FIELDS } from '../../settings/fields.gen.ts';
import { leafAt, leaves, setLeaf } from '../../settings/leaf-paths.ts';
import { isLocked } from '../../settings/locks.ts';
import { migrate } from '../../settings/migrate.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../settings/settings.gen.ts';

/** Settings of an application with another settings version. */
export interface ForeignSettings {
  /** The application's settings version. */
  version: number;
  /** The raw settings. */
  raw: JsonObject;
  /** The known settings, at their paths in our version; no defaults are filled in. */
  known: JsonObject;
}

/**
 * Reads settings of any version. Older ones are migrated in memory; of newer ones, settings at known paths are used.
 * Moves do not depend on the platform, and a running application has already replaced the one value that does.
 */
export function readForeign(raw: JsonObject): ForeignSettings {
  const version = typeof raw.version === 'number' ? raw.version : SCHEMA_VERSION;
  const current = version < SCHEMA_VERSION ? migrate(raw, { platform: 'linux', partial: true }) : raw;
  const known: JsonObject = { version: SCHEMA_VERSION };
  for (const [path, value] of leaves(current)) if (path !== 'version') setLeaf(known, path, value);
  return { version, raw, known };
}

/** Converts a body to the application's version, with each setting at its path there. Throws `ERR_SETTINGS_INVALID`. */
export function toForeign(body: JsonObject, version: number): JsonObject {
  return version < SCHEMA_VERSION ? downgrade(body, version) : { ...body, version };
}

/** The application's path of a setting. */
export function foreignPlace(path: string, version: number): string {
  const field = FIELDS.find((each) => each.path === path);
  return (field && placeAt(field.path, version)) ?? path;
}

/** Returns the reason why the application lacks a setting, as a sentence; undefined if it has it. */
export function absence(path: SettingPath, { version, raw }: ForeignSettings): string | undefined {
  const probe: JsonObject = {};
  setLeaf(probe, path, null);
  const [missing] = version < SCHEMA_VERSION ? missingIn(version, probe) : [];
  if (missing) return `"${path}" ${missing.needs}; the application has version ${version}.`;
  if (leafAt(raw, foreignPlace(path, version)) !== undefined) return undefined;
  return `This ${COMPATIBLE.productName} (settings version ${version}) has no setting "${foreignPlace(path, version)}".`;
}

/** Returns the lock record at the paths of our version. */
export function locksAtNewest(locks: JsonObject, version: number): JsonObject {
  const here: JsonObject = {};
  for (const { path } of FIELDS) if (isLocked(locks, foreignPlace(path, version))) setLeaf(here, path, true);
  return here;
}
