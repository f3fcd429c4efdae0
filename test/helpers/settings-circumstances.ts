import type { JsonObject } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { mergeSettings } from '../../src/settings/merge.ts';
import { type ValidateContext, validate } from '../../src/settings/validate.ts';

/** Where a payload is validated: by default Linux with its defaults. `current` has dotted paths. */
export interface Circumstances {
  platform?: Platform;
  arch?: string;
  osVersion?: string;
  current?: JsonObject;
  locked?: JsonObject;
  versions?: string[];
}

/** The validation context for the circumstances. */
export function context({ platform = 'linux', arch = 'x64', current = {}, ...rest }: Circumstances): ValidateContext {
  const host = { platform, arch, ...(platform === 'darwin' ? { osRelease: '22.6.0' } : {}) };
  return {
    current: mergeSettings(defaultSettings(host), nested(current)),
    platform,
    arch,
    ...(rest.osVersion === undefined ? {} : { osVersion: rest.osVersion }),
    ...(rest.locked === undefined ? {} : { locked: rest.locked }),
    ...(rest.versions === undefined ? {} : { kubernetesVersions: rest.versions }),
  };
}

/** Dotted paths to an object. */
function nested(flat: JsonObject): JsonObject {
  const object: JsonObject = {};
  for (const [path, value] of Object.entries(flat)) setLeaf(object, path, value);
  return object;
}

/** The wire messages for a payload of dotted paths. */
export function lines(payload: JsonObject, circumstances: Circumstances = {}): string[] {
  return validate(nested(payload), context(circumstances)).map(({ message }) => message);
}
