import { RdError } from '../../src/errors.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { parseRegistryFile } from '../formats/reg.ts';
import { namesBelow, type RegistryKey } from '../formats/registry.ts';
import { registrySettings } from '../formats/registry-settings.ts';
import type { PolicyPrograms } from './places.ts';
import { invalidPolicy, type WrittenPolicy } from './policy.ts';

/**
 * Everything below a key of this computer's registry; `undefined` when there is none.
 * @throws RdError `ERR_PROFILE_INVALID` when it cannot be read or holds what is not understood.
 */
export async function registryKey(path: string, programs: PolicyPrograms): Promise<RegistryKey | undefined> {
  const unreadable = (reason: string, cause?: RdError) =>
    invalidPolicy(`could not read the deployment profile ${path}: ${reason}`, cause?.details, cause);
  try {
    if ((await programs.queryRegistry(path)) === undefined) {
      if (await isListed(path, programs)) throw unreadable('the registry key exists but cannot be read');
      return undefined;
    }
    const key = parseRegistryFile(path, await programs.exportRegistry(path));
    if (!key) throw unreadable('its export is not a registry file that can be read');
    return key;
  } catch (cause) {
    if (!(cause instanceof RdError) || cause.code === 'ERR_PROFILE_INVALID') throw cause;
    throw unreadable(cause.message, cause);
  }
}

/** A query fails alike for a key that is not there and for one that may not be read; the key above knows which. */
async function isListed(path: string, programs: PolicyPrograms): Promise<boolean> {
  const above = await programs.queryRegistry(path.slice(0, path.lastIndexOf('\\')));
  // Only the paths of keys are the same in every language.
  return above?.split(/\r?\n/).some((line) => namesBelow(path, line.trim())?.length === 0) ?? false;
}

/**
 * The profile in a registry key; `undefined` for a key without any value that means something. Bad values are found here and
 * reported with the profile.
 */
export function registryPolicy(source: string, key: RegistryKey): WrittenPolicy | undefined {
  const { settings, recognised, findings } = registrySettings(key);
  if (recognised === 0) return undefined;
  const nameOf = (names: readonly string[]) => [source, ...names].join('\\');
  return {
    source,
    settings,
    nameOf,
    quote: (json) => `'${json}'`,
    heading: 'Error in registry settings:',
    noVersion:
      `Invalid deployment: no version specified at ${source}. ` +
      `Add a version field to make it valid (current version is ${SCHEMA_VERSION}).`,
    problems: findings.flatMap(({ names, what }) =>
      what.is === 'wrong-type'
        ? [`Error for field '${nameOf(names)}': expecting value of type ${what.expected}, got ${what.found}`]
        : [],
    ),
    passedOver: findings.flatMap(({ names, what }) => (what.is === 'no-setting' ? [nameOf(names)] : [])),
  };
}
