import { subKey } from '../../profiles/formats/registry.ts';
import { interpretPolicy } from './interpretation.ts';
import { readJsonPolicy } from './json-policy.ts';
import { type PolicyPlace, placeName } from './places.ts';
import { readPlistPolicy } from './plist-policy.ts';
import { ofOwnProfile, type Policies, type PolicyHost, type WrittenPolicy } from './policy.ts';
import type { PolicyPrograms } from './programs.ts';

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
      // It knows the shapes of all versions, which are large, and only Windows needs it.
      const { registryKey, registryPolicy } = await import('./registry-query.ts');
      const key = await registryKey(place.key, programs);
      const profile = (name: string) => {
        const below = key && subKey(key, name);
        return below && registryPolicy(`${place.key}\\${name}`, below);
      };
      return { defaults: profile('Defaults'), locked: profile('Locked') };
    }
  }
}
