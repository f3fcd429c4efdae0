import type { PolicyPrograms } from '../../src/policies/programs.ts';
import { registryKey } from '../../src/policies/read.ts';
import type { ImportedPart } from './importer.ts';
import { partsAtKey } from './registry-parts.ts';

/**
 * The deployment profiles that this computer has at one place of its registry, as it is now.
 * @param place of the registry: `HKLM\SOFTWARE\Policies\Rancher Desktop`.
 * @returns none where the application would look at the next place.
 * @throws RdError `ERR_PROFILE_INVALID` when it cannot be read or holds what is not understood.
 */
export async function registryProfiles(place: string, programs: PolicyPrograms): Promise<ImportedPart[]> {
  const key = await registryKey(place, programs);
  return key ? partsAtKey({ path: place, key }) : [];
}
