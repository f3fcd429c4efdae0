import { RdError } from '../../src/errors.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { parseRegistryFile } from '../formats/reg.ts';
import { RegistryFileProblem } from '../formats/reg-file.ts';
import { namesBelow, type RegistryKey } from '../formats/registry.ts';
import { registrySettings } from '../formats/registry-settings.ts';
import type { PolicyPrograms } from './places.ts';
import { invalidPolicy, type WrittenPolicy } from './policy.ts';

/**
 * Reads everything below a key of this computer's registry; returns undefined when there is none.
 * @throws RdError `ERR_PROFILE_INVALID` when it cannot be read or parsed.
 */
export async function registryKey(path: string, programs: PolicyPrograms): Promise<RegistryKey | undefined> {
  const unreadable = (reason: string, cause?: RdError) =>
    invalidPolicy(`could not read the deployment profile ${path}: ${reason}`, cause?.details, cause);
  try {
    if ((await programs.queryRegistry(path)) === undefined) {
      if (await isListed(path, programs)) throw unreadable('the registry key exists but cannot be read');
      return undefined;
    }
    return parseRegistryFile(path, await programs.exportRegistry(path));
  } catch (cause) {
    if (cause instanceof RegistryFileProblem) {
      const line = cause.line === undefined ? '' : `line ${cause.line}: `;
      throw unreadable(`its export is not a registry file that can be read: ${line}${cause.message}`);
    }
    if (!(cause instanceof RdError) || cause.code === 'ERR_PROFILE_INVALID') throw cause;
    throw unreadable(cause.message, cause);
  }
}

/** Whether a key exists. A query fails the same way for a missing key and for an unreadable one; the parent key lists only existing ones. */
async function isListed(path: string, programs: PolicyPrograms): Promise<boolean> {
  const above = await programs.queryRegistry(path.slice(0, path.lastIndexOf('\\')));
  // The rest of the output is localized; key paths are not.
  return above?.split(/\r?\n/).some((line) => namesBelow(path, line.trim())?.length === 0) ?? false;
}

/**
 * Returns the profile in a registry key; undefined for a key without any recognized value. Invalid values are collected here and reported with the
 * profile.
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
    ignored: findings.flatMap(({ names, what }) => (what.is === 'no-setting' ? [nameOf(names)] : [])),
  };
}
