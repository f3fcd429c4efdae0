import { RdError } from '../errors.ts';
import { interpretPolicy } from './interpretation.ts';
import { readJsonPolicy } from './json-policy.ts';
import { type PolicyPlace, placeName } from './places.ts';
import { readPlistPolicy } from './plist-policy.ts';
import { invalidPolicy, ofOwnProfile, type Policies, type PolicyHost, type WrittenPolicy } from './policy.ts';
import type { PolicyPrograms } from './programs.ts';
import { parseRegistryFile } from './registry-file.ts';
import { type RegistryKey, subKey } from './registry-key.ts';
import { listsKey, parseQuery } from './registry-query.ts';

/** Where profiles may be, and what reads those that this program cannot read itself. */
export interface PolicySources {
  places: readonly PolicyPlace[];
  programs: PolicyPrograms;
}

/** The two profiles of one place. */
interface Pair {
  defaults: WrittenPolicy | undefined;
  locked: WrittenPolicy | undefined;
}

/**
 * Reads the profiles of the first place that has either; places after it are not looked at, and nothing is merged.
 * @throws RdError `ERR_PROFILE_INVALID` naming the place and every bad field: a policy is never applied in part.
 */
export async function readPolicies({ places, programs }: PolicySources, host: PolicyHost): Promise<Policies> {
  const looked: string[] = [];
  for (const place of places) {
    looked.push(placeName(place));
    const found = await policiesAt(place, programs, host).catch((error: unknown) => {
      throw place.own ? ofOwnProfile(error) : error;
    });
    if (found) return { ...found, ...(place.own ? { own: true } : {}), looked };
  }
  return { warnings: [], looked };
}

async function policiesAt(
  place: PolicyPlace,
  programs: PolicyPrograms,
  host: PolicyHost,
): Promise<Omit<Policies, 'looked'> | undefined> {
  const { defaults, locked } = await pairAt(place, programs);
  if (!defaults && !locked) return undefined;
  const warnings: string[] = [];
  return {
    ...(defaults ? { defaults: interpretPolicy(defaults, { locked: false, host, warnings }) } : {}),
    ...(locked ? { locked: interpretPolicy(locked, { locked: true, host, warnings }) } : {}),
    warnings,
  };
}

async function pairAt(place: PolicyPlace, programs: PolicyPrograms): Promise<Pair> {
  switch (place.format) {
    case 'json':
      return {
        defaults: await readJsonPolicy(place.defaults, place),
        locked: await readJsonPolicy(place.locked, place),
      };
    case 'plist':
      return {
        defaults: await readPlistPolicy(place.defaults, programs, place),
        locked: await readPlistPolicy(place.locked, programs, place),
      };
    case 'registry': {
      const key = await registryKey(place.key, programs);
      // It knows the shapes of all versions, which are large, and only Windows needs it.
      const { registryPolicy } = await import('./registry-policy.ts');
      const profile = (name: string) => {
        const below = key && subKey(key, name);
        return below && registryPolicy(`${place.key}\\${name}`, below);
      };
      return { defaults: profile('Defaults'), locked: profile('Locked') };
    }
  }
}

/**
 * Everything below a key of this computer's registry; `undefined` when there is none.
 * @throws RdError `ERR_PROFILE_INVALID` when it cannot be read or holds what is not understood.
 */
export async function registryKey(path: string, programs: PolicyPrograms): Promise<RegistryKey | undefined> {
  try {
    return await queriedKey(path, programs);
  } catch (cause) {
    if (!(cause instanceof RdError) || cause.code === 'ERR_PROFILE_INVALID') throw cause;
    throw invalidPolicy(`could not read the deployment profile ${path}: ${cause.message}`, cause.details, cause);
  }
}

async function queriedKey(path: string, programs: PolicyPrograms): Promise<RegistryKey | undefined> {
  const output = await programs.queryRegistry(path, true);
  if (output === undefined) {
    if (await isListed(path, programs)) {
      throw invalidPolicy(
        `could not read the deployment profile ${path}: the registry key is there and cannot be read`,
      );
    }
    return undefined;
  }
  const { key, doubtful } = parseQuery(path, output);
  if (!doubtful) return key;
  const exact = parseRegistryFile(path, await programs.exportRegistry(path));
  if (exact) return exact;
  throw invalidPolicy(`could not read the deployment profile ${path}: it has a value that is not understood`);
}

/** A query fails alike for a key that is not there and for one that may not be read; the key above knows which. */
async function isListed(path: string, programs: PolicyPrograms): Promise<boolean> {
  const above = await programs.queryRegistry(path.slice(0, path.lastIndexOf('\\')), false);
  return above !== undefined && listsKey(above, path);
}
