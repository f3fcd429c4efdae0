import { RdError } from '../errors.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { COMPATIBLE } from '../product.ts';
import { settingAt } from './fields.ts';
import { leaves, setLeaf } from './leaf-paths.ts';
import { PAST } from './past.gen.ts';
import { RELEASES } from './releases.ts';
import type { SettingPath } from './settings.gen.ts';

/** A former path of a setting. */
interface EarlierPlace {
  path: string;
  /** First and last settings version that used it. */
  from: number;
  to: number;
  /** Converts the current value to that version's form. */
  write?: (value: JsonValue) => JsonValue;
}

/**
 * The moves of `migrate.ts` in reverse. Paths that no release ever wrote are left out: an application would
 * silently ignore them.
 */
const EARLIER_PLACES: Partial<Record<SettingPath, EarlierPlace>> = Object.fromEntries(
  PAST.flatMap(({ path, now, from, to, inverted }) =>
    now === undefined || from === undefined || to === undefined
      ? []
      : [[now, { path, from, to, ...(inverted ? { write: (value: JsonValue) => !value } : {}) }]],
  ),
);

/** First releases of the settings versions before those of `RELEASES`. */
const BEFORE = ['0.1', '0.1', '0.4', '1.0'] as const;

/** A setting that an application's version does not have. */
export interface MissingSetting {
  path: SettingPath;
  /** `needs settings version 17 (Rancher Desktop 1.22)`. */
  needs: string;
}

/** Returns the settings of a newest-version payload that do not exist in an older version, in schema order. */
export function missingIn(version: number, payload: JsonObject): MissingSetting[] {
  return leaves(payload).flatMap(([path]) => {
    if (path === 'version' || placeOf(path, version) !== undefined) return [];
    const needed = EARLIER_PLACES[path]?.from ?? since(path);
    const release = `${COMPATIBLE.productName} ${releaseOf(needed)}`;
    return [{ path, needs: `needs settings version ${needed} (${release.trimEnd()})` }];
  });
}

/**
 * Converts a partial payload to an older version, for applications that still use it; `migrate` reverses this. Drops
 * unknown members. Values are not validated. Throws `ERR_SETTINGS_INVALID` naming every setting that the older version
 * does not have.
 */
export function downgrade(payload: JsonObject, version: number): JsonObject {
  const missing = missingIn(version, payload);
  if (missing.length > 0) {
    const lines = missing.map(({ path, needs }) => `"${path}" ${needs}`);
    throw new RdError('ERR_SETTINGS_INVALID', `${lines.join('; ')}; the application has version ${version}`, {
      advice: 'Remove these settings, or update the application.',
    });
  }
  const older: JsonObject = { version };
  for (const [path, value] of leaves(payload)) {
    const place = path === 'version' ? undefined : placeOf(path, version);
    if (place) setLeaf(older, place.path, structuredClone(place.write?.(value) ?? value));
  }
  return older;
}

/** Returns the first release with a settings version, or with the next released one. */
function releaseOf(version: number): string {
  return BEFORE[version - 1] ?? RELEASES.find(({ settingsVersion }) => settingsVersion >= version)?.name ?? '';
}

/** Returns a setting's dotted path in releases with a settings version, or undefined if they do not have it. */
export function placeAt(path: SettingPath, version: number): string | undefined {
  return placeOf(path, version)?.path;
}

function placeOf(path: SettingPath, version: number): Pick<EarlierPlace, 'path' | 'write'> | undefined {
  if (version >= since(path)) return { path };
  const earlier = EARLIER_PLACES[path];
  return earlier && version >= earlier.from && version <= earlier.to ? earlier : undefined;
}

function since(path: SettingPath): number {
  return settingAt(path)?.since ?? Number.POSITIVE_INFINITY;
}
