import { type PolicyPlace, placeName } from '../../src/policies/places.ts';
import { ofOwnProfile } from '../../src/policies/policy.ts';
import { readPolicyFile } from '../../src/policies/policy-file.ts';
import type { PolicySources } from '../../src/policies/read.ts';
import type { Platform } from '../../src/settings/field.ts';
import { type ImportedPart, PARTS } from '../formats/format.ts';

/** The deployment profiles that this computer obeys. */
export interface SystemParts {
  parts: (ImportedPart & { platform: Platform })[];
  /** Every place that was looked at, best first, up to the one that was taken. */
  looked: string[];
}

/**
 * Reads the profiles of the first place that has either, as the application does. No parts: the computer has none.
 * @throws RdError `ERR_PROFILE_INVALID` for what is there and cannot be read.
 */
export async function systemParts({ places, programs }: PolicySources): Promise<SystemParts> {
  const looked: string[] = [];
  for (const place of places) {
    looked.push(placeName(place));
    const parts = await partsAt(place, programs).catch((error: unknown) => {
      throw place.own ? ofOwnProfile(error) : error;
    });
    if (parts.length > 0)
      return { parts: parts.map((part) => ({ ...part, platform: PLATFORM[place.format] })), looked };
  }
  return { parts: [], looked };
}

const PLATFORM = { json: 'linux', plist: 'darwin', registry: 'win32' } as const;

async function partsAt(place: PolicyPlace, programs: PolicySources['programs']): Promise<ImportedPart[]> {
  if (place.format === 'registry') {
    const [{ registryKey }, { partsAtKey }] = await Promise.all([
      import('../../src/policies/registry-query.ts'),
      import('../formats/registry-parts.ts'),
    ]);
    const key = await registryKey(place.key, programs);
    if (!key) return [];
    return partsAtKey({ path: place.key, key });
  }
  const parts: ImportedPart[] = [];
  for (const part of PARTS) {
    const path = place[part];
    const bytes = await readPolicyFile(path, place);
    if (bytes === undefined) continue;
    const { read } = await importerOf(place.format);
    parts.push(...(await read(bytes, path)).map((each) => ({ ...each, part })));
  }
  return parts;
}

async function importerOf(format: 'json' | 'plist') {
  return format === 'json'
    ? (await import('../formats/json.ts')).jsonImporter
    : (await import('../formats/plist.ts')).plistImporter;
}
