import { lstat } from 'node:fs/promises';
import { messageOf, RdError } from '../../src/errors.ts';
import { isObject } from '../../src/json.ts';
import { ioError, systemCode } from '../../src/os/io-error.ts';
import { shellWord } from '../../src/os/program.ts';
import { openToRead } from '../../src/os/regular-file.ts';
import type { Platform } from '../../src/settings/field.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { tooLong } from '../../src/settings/source-text.ts';
import { exposureFix, exposureOf, exposureText, trustOfSystem, trustOfUser } from '../../src/state/ownership.ts';
import { type ImportedPart, PARTS, type Part, PROFILE_LIMIT } from '../formats/format.ts';
import { jsonImporter, jsonObject } from '../formats/json.ts';
import { jsonOf, plistImporter, plistValue } from '../formats/plist.ts';
import { subKey } from '../formats/registry.ts';
import { interpretPolicy } from './interpretation.ts';
import { type PolicyPlace, type PolicyPrograms, placeName } from './places.ts';
import { invalidPolicy, type Policies, type PolicyHost, type WrittenPolicy, withOwnerAdvice } from './policy.ts';

/** The locations of profiles, and access to the registry. */
export interface PolicySources {
  places: readonly PolicyPlace[];
  programs: PolicyPrograms;
}

/**
 * Reads the profiles of the first location that has at least one. Later locations are ignored, and nothing is merged.
 * @throws RdError `ERR_PROFILE_INVALID` naming the location and every bad field: a policy is never applied in part.
 */
export async function readPolicies({ places, programs }: PolicySources, host: PolicyHost): Promise<Policies> {
  const { value, place, looked } = await firstPlace(places, (each) => policiesAt(each, programs, host));
  return { warnings: [], ...value, ...(place?.own ? { own: true } : {}), looked };
}

/** The deployment profiles in force on this computer, as written. */
interface SystemParts {
  parts: (ImportedPart & { platform: Platform })[];
  /** The searched locations, highest precedence first, up to the one used. */
  looked: string[];
}

/**
 * Reads the profiles of the first location that has at least one, as written; empty `parts` if there is none.
 * @throws RdError `ERR_PROFILE_INVALID` for a profile that exists but cannot be read.
 */
export async function systemParts({ places, programs }: PolicySources): Promise<SystemParts> {
  const { value = [], looked } = await firstPlace(places, (each) => writtenPartsAt(each, programs));
  return { parts: value, looked };
}

async function firstPlace<T>(
  places: readonly PolicyPlace[],
  read: (place: PolicyPlace) => Promise<T | undefined>,
): Promise<{ value?: T; place?: PolicyPlace; looked: string[] }> {
  const looked: string[] = [];
  for (const place of places) {
    looked.push(placeName(place));
    const value = await read(place).catch((error: unknown) => {
      throw place.own ? withOwnerAdvice(error) : error;
    });
    if (value) return { value, place, looked };
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
      place.format === 'json' ? readJsonPolicy(path, place) : readPlistPolicy(path, place);
    return { defaults: await read(place.defaults), locked: await read(place.locked) };
  }
  // Loaded on demand: it includes the shapes of all versions, which are large, and only Windows needs it.
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

/** The required owner of a profile: root for `system`, otherwise the user or root. */
type PolicyOwner = Pick<PolicyPlace, 'own' | 'system'>;

/**
 * Reads the bytes of a profile; returns undefined when there is no file. Follows links.
 * @throws RdError `ERR_PROFILE_INVALID` for a profile that exists but cannot be read, because skipping it would lift a protection, and for
 *   one that others can write, because anybody may have put it there.
 */
async function readPolicyFile(path: string, owner: PolicyOwner): Promise<Buffer | undefined> {
  // Checked before opening: others who can write to the directory may have removed the file. A profile in the user's own home does not
  // protect against others, so its absence needs no check.
  if (!owner.own) refuseExposedPolicy(path, owner);
  try {
    const handle = await openToRead(path, { follow: true });
    try {
      const stat = await handle.stat();
      if (owner.own) refuseExposedPolicy(path, owner);
      if (stat.size > PROFILE_LIMIT) throw unreadableProfile(path, `it ${tooLong(stat.size, PROFILE_LIMIT)}`);
      const bytes = await handle.readFile();
      // The file may have grown since `stat`.
      if (bytes.length > PROFILE_LIMIT) throw unreadableProfile(path, `it ${tooLong(bytes.length, PROFILE_LIMIT)}`);
      return bytes;
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (systemCode(cause) === 'EISDIR') throw unreadableProfile(path, 'it is a directory');
    if (systemCode(cause) !== 'ENOENT') throw readFailure(path, cause);
    if (await isLink(path)) throw unreadableProfile(path, 'it is a dangling symbolic link');
    return undefined;
  }
}

function readFailure(path: string, cause: unknown): RdError {
  // `openToRead` throws these for anything but a regular file.
  if (cause instanceof RdError)
    return cause.code === 'ERR_PROFILE_INVALID' ? cause : unreadableProfile(path, 'it is not a file');
  const known = ioError('read the deployment profile', path, cause, 'ERR_PROFILE_INVALID');
  return invalidPolicy(known.message, [], cause);
}

function unreadableProfile(path: string, reason: string): RdError {
  return invalidPolicy(`could not read the deployment profile ${path}: ${reason}`);
}

/** Refuses an exposed profile. @throws RdError `ERR_PROFILE_INVALID` naming the path that others can write, with the command that fixes it. */
function refuseExposedPolicy(path: string, { system }: PolicyOwner): void {
  const exposure = exposureOf(path, system ? trustOfSystem() : trustOfUser());
  if (!exposure) return;
  const fix = exposureFix(exposure) ?? `chown ${system ? 'root' : '"$(id -un)"'} ${shellWord(exposure.path)}`;
  throw invalidPolicy(`the deployment profile ${path} cannot be trusted: ${exposureText(exposure)}`, [
    `Review the profile, then run${system ? ' as root' : ''}: \`${fix}\`.`,
  ]);
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (stat) => stat.isSymbolicLink(),
    () => false,
  );
}

/** Reads a Linux profile; returns undefined when there is no file. Throws `ERR_PROFILE_INVALID`. */
async function readJsonPolicy(path: string, owner: PolicyOwner): Promise<WrittenPolicy | undefined> {
  const bytes = await readPolicyFile(path, owner);
  if (bytes === undefined) return undefined;
  const wrong = (reason: string, details?: readonly string[]) =>
    invalidPolicy(`Error parsing deployment profile from ${path}: ${reason}`, details);
  return writtenFile(path, jsonObject(bytes, path, wrong, 'it has mistakes'));
}

/** Reads a macOS profile, XML or binary; returns undefined when there is no file. Throws `ERR_PROFILE_INVALID`. */
async function readPlistPolicy(path: string, owner: PolicyOwner): Promise<WrittenPolicy | undefined> {
  const bytes = await readPolicyFile(path, owner);
  if (bytes === undefined) return undefined;
  const wrong = (reason: string, cause?: unknown) =>
    invalidPolicy(`Error loading plist file ${path}: ${reason}`, [], cause);
  const list = await plistValue(bytes).catch((cause: unknown) => {
    throw wrong(messageOf(cause), cause);
  });
  const value = jsonOf(list, (place, other) => {
    throw wrong(`"${place}" is ${other}, which no setting can be`);
  });
  if (!isObject(value)) throw wrong('it does not contain a dictionary');
  return writtenFile(path, value);
}

/** Returns the profile of a file that uses the settings' own names. */
export function writtenFile(path: string, settings: WrittenPolicy['settings']): WrittenPolicy {
  return {
    source: path,
    settings,
    nameOf: (names) => names.join('.'),
    quote: (json) => json,
    heading: `Error in deployment file ${path}:`,
    noVersion:
      `Invalid deployment file ${path}: no version specified. ` +
      `Add a version field to make it valid (current version is ${SCHEMA_VERSION}).`,
    problems: [],
    ignored: [],
  };
}
