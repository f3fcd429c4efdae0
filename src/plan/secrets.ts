import type { JsonObject, JsonValue } from '../json.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { leafAt, removeLeaf, setLeaf } from '../settings/leaf-paths.ts';
import { copyOfObject } from '../settings/own.ts';

const SECRETS = FIELDS.filter(({ sensitive }) => sensitive).map(({ path }) => path);

/** Returns a copy of the settings in which each secret that is set reads `{ "sensitive": true }`. */
export function maskSettings(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const path of secretsIn(copy)) setLeaf(copy, path, { sensitive: true } satisfies JsonValue);
  return copy;
}

/**
 * Returns a copy of the settings without the secrets that are set. Unlike a mask, it is valid as settings: written back, it leaves the secrets as
 * they are.
 */
export function settingsWithoutSecrets(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const path of secretsIn(copy)) removeLeaf(copy, path);
  return copy;
}

function secretsIn(settings: JsonObject): string[] {
  return SECRETS.filter((path) => {
    const value = leafAt(settings, path);
    return value !== undefined && value !== '';
  });
}
