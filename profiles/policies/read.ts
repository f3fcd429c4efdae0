import type { Platform } from '../../src/settings/field.ts';
import { type ImportedPart, PARTS, type Part } from '../formats/format.ts';
import { jsonImporter } from '../formats/json.ts';
import { plistImporter } from '../formats/plist.ts';
import { subKey } from '../formats/registry.ts';
import { interpretPolicy } from './interpretation.ts';
import { type PolicyPlace, placeName } from './places.ts';
import { ofOwnProfile, type Policies, type PolicyHost, type WrittenPolicy } from './policy.ts';
import { readJsonPolicy, readPlistPolicy, readPolicyFile } from './policy-file.ts';
import type { PolicyPrograms } from './programs.ts';

/** Where profiles may be, and what reads those that this program cannot read itself. */
export interface PolicySources {
  places: readonly PolicyPlace[];
  programs: PolicyPrograms;
}

/**
 * Reads the profiles of the first place that has either; places after it are not looked at, and nothing is merged.
 * @throws RdError `ERR_PROFILE_INVALID` naming the place and every bad field: a policy is never applied in part.
 */
export async function readPolicies({ places, programs }: PolicySources, host: PolicyHost): Promise<Policies> {
  const { found, place, looked } = await firstPlace(places, (each) => policiesAt(each, programs, host));
  return { warnings: [], ...found, ...(place?.own ? { own: true } : {}), looked };
}

/** The deployment profiles that this computer obeys, as they are written. */
interface SystemParts {
  parts: (ImportedPart & { platform: Platform })[];
  /** Every place that was looked at, best first, up to the one that was taken. */
  looked: string[];
}

/**
 * The profiles of the first place that has either, as written. No parts: the computer has none.
 * @throws RdError `ERR_PROFILE_INVALID` for what is there and cannot be read.
 */
export async function systemParts({ places, programs }: PolicySources): Promise<SystemParts> {
  const { found = [], looked } = await firstPlace(places, (each) => writtenPartsAt(each, programs));
  return { parts: found, looked };
}

async function firstPlace<Found>(
  places: readonly PolicyPlace[],
  look: (place: PolicyPlace) => Promise<Found | undefined>,
): Promise<{ found?: Found; place?: PolicyPlace; looked: string[] }> {
  const looked: string[] = [];
  for (const place of places) {
    looked.push(placeName(place));
    const found = await look(place).catch((error: unknown) => {
      throw place.own ? ofOwnProfile(error) : error;
    });
    if (found) return { found, place, looked };
  }
  return { looked };
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

type Pair = Partial<Record<Part, WrittenPolicy | undefined>>;

async function pairAt(place: PolicyPlace, programs: PolicyPrograms): Promise<Pair> {
  if (place.format !== 'registry') {
    const read = (path: string) =>
      place.format === 'json' ? readJsonPolicy(path, place) : readPlistPolicy(path, programs, place);
    return { defaults: await read(place.defaults), locked: await read(place.locked) };
  }
  // It knows the shapes of all versions, which are large, and only Windows needs it.
  const { registryKey, registryPolicy } = await import('./registry-policy.ts');
  const key = await registryKey(place.key, programs);
  const profile = (name: string) => {
    const below = key && subKey(key, name);
    return below && registryPolicy(`${place.key}\\${name}`, below);
  };
  return { defaults: profile('Defaults'), locked: profile('Locked') };
}

const IMPORTERS = { json: jsonImporter, plist: plistImporter };

async function writtenPartsAt(place: PolicyPlace, programs: PolicyPrograms): Promise<SystemParts['parts'] | undefined> {
  if (place.format === 'registry') {
    const [{ registryKey }, { partsAtKey }] = await Promise.all([
      import('./registry-policy.ts'),
      import('../formats/registry-parts.ts'),
    ]);
    const key = await registryKey(place.key, programs);
    const parts = key ? partsAtKey({ path: place.key, key }) : [];
    return parts.length > 0 ? parts.map((part) => ({ ...part, platform: 'win32' })) : undefined;
  }
  const { platform, read } = IMPORTERS[place.format];
  const parts: SystemParts['parts'] = [];
  for (const part of PARTS) {
    const bytes = await readPolicyFile(place[part], place);
    if (bytes) parts.push(...(await read(bytes, place[part])).map((each) => ({ ...each, part, platform })));
  }
  return parts.length > 0 ? parts : undefined;
}
