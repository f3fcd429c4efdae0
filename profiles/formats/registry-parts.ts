import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { type ImportedPart, type Loss, PARTS, type Part } from './format.ts';
import { isSameName, type RegistryKey, subKey } from './registry.ts';
import type { RegistryContents } from './registry-contents.ts';
import { type RegistryFinding, type RegistrySettings, registrySettings, valueCount } from './registry-settings.ts';

interface PartAtPath extends KeyAtPath, RegistrySettings {
  part: Part;
}

/** Maximum number of losses listed in an error. */
const MAX_LISTED = 20;

/**
 * Finds the deployment profiles in a file like the application: both come from the first place that has either. Anything else in keys of the
 * application is lost, and reported with its reason beside the first part; values of other products are counted in a note.
 * @param label name of the file.
 * @throws RdError `ERR_PROFILE_INVALID` when no value in it is a setting of a profile.
 */
export function registryParts(label: string, { hives, otherPrograms }: RegistryContents): ImportedPart[] {
  const roots = hives.flatMap(rootsOf);
  const places = placesIn(roots);
  const { kept, rest } = choose(places);
  const parents = new Set(roots.flatMap(parentsOf));
  const profiles = profileKeys(places);
  const lost = [...rest, ...roots.flatMap((root) => outside(root, parents, profiles))];
  if (kept.length === 0) {
    const others = [...otherPrograms].map(([place, count]) => ({ place, reason: `${NOT_PART}${valuesText(count)}` }));
    throw noProfile(label, [...lost, ...others]);
  }
  const notes = otherProgramsNotes(label, [...otherPrograms.values()]);
  return kept.map((part, index) =>
    index === 0
      ? { ...toImportedPart(part, `${label}: ${part.path}`, lost), ...(notes.length > 0 ? { notes } : {}) }
      : toImportedPart(part, `${label}: ${part.path}`, []),
  );
}

/** Returns the profiles at one place of a registry, a key such as `HKLM\SOFTWARE\Policies\Rancher Desktop`; none if it has no recognized value. */
export function partsAtKey(place: KeyAtPath): ImportedPart[] {
  const { kept, rest } = choose([place]);
  const general = [...rest, ...outside(place, new Set(), profileKeys([place]))];
  return kept.map((part, index) => toImportedPart(part, part.path, index === 0 ? general : []));
}

function profileKeys(places: readonly KeyAtPath[]): ReadonlySet<RegistryKey | undefined> {
  return new Set(places.flatMap(({ key }) => PARTS.map((part) => subKey(key, part))));
}

/** Chooses the profiles at the first place that has one, and explains why those at other places are ignored. */
function choose(places: readonly KeyAtPath[]): { kept: PartAtPath[]; rest: Loss[] } {
  const found = places.map((place) => ({ place, parts: partsAt(place) }));
  const taken = found.find(({ parts }) => parts.some(counts));
  const kept = taken?.parts.filter(counts) ?? [];
  const others = found.flatMap(({ parts }) => parts).filter((part) => !kept.includes(part));
  const rest = others.flatMap((part) =>
    taken && counts(part)
      ? [
          {
            place: part.path,
            reason: `the application takes both profiles from ${taken.place.path}, ${FIRST}${values(part.key)}`,
          },
        ]
      : part.findings.map((finding) => lossOf(part.path, finding, true)),
  );
  return { kept, rest };
}

const FIRST = 'where it looks first';

function counts({ recognised }: PartAtPath): boolean {
  return recognised > 0;
}

function partsAt({ path, key }: KeyAtPath): PartAtPath[] {
  return PARTS.flatMap((part) => {
    const below = subKey(key, part);
    if (!below) return [];
    return [{ part, path: `${path}\\${below.name}`, key: below, ...withVersion(registrySettings(below), below) }];
  });
}

/** Keeps a version of the wrong type, so that the profile is refused rather than read as one without a version. */
function withVersion(read: RegistrySettings, { values }: RegistryKey): RegistrySettings {
  const version = values.find(({ name }) => isSameName(name, 'version'));
  if (!version || read.settings.version !== undefined) return read;
  const findings = read.findings.filter(({ names }) => names.join('.') !== 'version');
  return { ...read, settings: { ...read.settings, version: version.data ?? null }, findings };
}

function toImportedPart(
  { part, path, settings, findings }: PartAtPath,
  source: string,
  general: readonly Loss[],
): ImportedPart {
  const lost = [...findings.map((finding) => lossOf(path, finding)), ...general];
  return { part, source, settings, lost };
}

/** Returns the roots below which profiles are searched: the hive, or each user in `HKEY_USERS`. */
function rootsOf(hive: RegistryKey): KeyAtPath[] {
  const root = { path: hive.name, key: hive };
  if (hive.name !== 'HKEY_USERS') return [root];
  const users = hive.keys.map((key) => ({ path: `${hive.name}\\${key.name}`, key }));
  return [{ path: hive.name, key: { ...hive, keys: [] } }, ...users];
}

/** Returns the places in the order in which the application searches: policies before older profiles, the computer before its users. */
function placesIn(roots: readonly KeyAtPath[]): KeyAtPath[] {
  const computerFirst = [...roots].sort((a, b) => rank(a) - rank(b));
  return PROFILE_KEYS.flatMap((path) =>
    computerFirst.flatMap((root) => pathBelow(root, path).slice(path.split('\\').length)),
  );
}

function rank({ path }: KeyAtPath): number {
  if (path === 'HKEY_LOCAL_MACHINE') return 0;
  return path === 'HKEY_CURRENT_USER' ? 1 : 2;
}

/** Returns the keys from the root down to the path, as far as they exist. */
function pathBelow(root: KeyAtPath, path: string): KeyAtPath[] {
  const found = [root];
  let at: KeyAtPath | undefined = root;
  for (const name of path.split('\\')) {
    const key: RegistryKey | undefined = at && subKey(at.key, name);
    at = key && { path: joinPath(at?.path ?? '', key.name), key };
    if (at) found.push(at);
  }
  return found;
}

function parentsOf(root: KeyAtPath): RegistryKey[] {
  return PROFILE_KEYS.flatMap((path) => pathBelow(root, path).map(({ key }) => key));
}

/** Returns the loss of a value. @param ignored whether the profile has no known value, so that the application ignores it instead of refusing it. */
function lossOf(path: string, { names, values: count, what }: RegistryFinding, ignored = false): Loss {
  const keys = count === undefined ? names.slice(0, -1) : names;
  const key = [path, ...keys].join('\\');
  const place = count === undefined ? placeOf(key, names.at(-1) ?? '') : key;
  const suffix = count === undefined ? '' : valuesText(count);
  switch (what.is) {
    case 'wrong-type':
      if (ignored) return { place, reason: `it is of another type than the setting${suffix}` };
      return {
        place,
        reason: `the application refuses the whole profile because of it: expected ${what.expected}, found ${foundText(what)}${suffix}`,
        refused: true,
        names,
      };
    case 'no-setting':
      return { place, reason: `it is not a setting${suffix}` };
    case 'not-read':
      return { place, reason: `the application does not read it${suffix}` };
    case 'ended':
      return { place, reason: `the setting was removed and has no effect${suffix}` };
  }
}

/** Describes a value by its type only, because it may be secret, or long. */
function foundText({ expected, type }: { expected: string; type: string }): string {
  if (type === 'key') return 'a key';
  return expected === 'boolean' && type.startsWith('REG_DWORD') ? `${type} other than 0 and 1` : type;
}

function noProfile(label: string, lost: readonly Loss[]): RdError {
  const listed = lost
    .slice(0, MAX_LISTED)
    // Names come from the file, and must be escaped for the terminal.
    .map(({ place, reason }) => formatFinding({ pointer: '', message: `${place}: ${reason}` }));
  const more = lost.length - listed.length;
  return new RdError('ERR_PROFILE_INVALID', `${label} contains no deployment profile`, {
    details: more > 0 ? [...listed, `and ${more} more`] : listed,
    advice: `A profile is in the keys Locked and Defaults below ${COMPATIBLE.policyKey}.`,
  });
}

/** A key with its full path. */
export interface KeyAtPath {
  path: string;
  key: RegistryKey;
}

/** Returns the profile that contains the place of a loss; undefined if none does. */
export function partOfPlace(place: string): Part | undefined {
  const lower = place.toLowerCase();
  return PARTS.find((part) =>
    PROFILE_KEYS.some((key) => {
      const path = `${key.toLowerCase()}\\${part}`;
      const from = lower.indexOf(path);
      return from >= 0 && ['', '\\', ':'].includes(lower.charAt(from + path.length));
    }),
  );
}

function otherProgramsNotes(label: string, counts: readonly number[]): string[] {
  const count = counts.reduce((sum, each) => sum + each, 0);
  if (count === 0) return [];
  const [is, was] = count === 1 ? ['is', 'was'] : ['are', 'were'];
  return [
    `${label}: ${countText(count, 'value')} in keys of other programs ${is} not part of a profile and ${was} ignored.`,
  ];
}

function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Lists everything outside the profiles: values of the keys above them, and each other key with everything below it. */
function outside(
  { path, key }: KeyAtPath,
  parents: ReadonlySet<RegistryKey>,
  profiles: ReadonlySet<RegistryKey | undefined>,
): Loss[] {
  return [
    ...key.values.map(({ name }) => ({ place: placeOf(path, name), reason: NOT_PART })),
    ...key.keys.flatMap((below) => {
      const place = joinPath(path, below.name);
      if (profiles.has(below)) return [];
      // Reports a misplaced key of the application itself, not the key around it.
      if (parents.has(below) || (below.keys.some(holdsOurs) && !isProduct(below)))
        return outside({ path: place, key: below }, parents, profiles);
      return [{ place, reason: `${NOT_PART}${values(below)}` }];
    }),
  ];
}

function isProduct({ name }: RegistryKey): boolean {
  return isSameName(name, COMPATIBLE.productName);
}

function holdsOurs(key: RegistryKey): boolean {
  return isProduct(key) || key.keys.some(holdsOurs);
}

const NOT_PART = 'it is not part of a deployment profile';

/** Keys relative to a hive; the first one takes precedence. */
const PROFILE_KEYS: readonly string[] = [COMPATIBLE.policyKey, COMPATIBLE.olderPolicyKey];

function values(key: RegistryKey): string {
  return valuesText(valueCount(key));
}

function valuesText(count: number): string {
  return ` (${countText(count, 'value')})`;
}

/** Names a whole key, or a value in it; `@` is the default value. */
function placeOf(key: string, value?: string): string {
  return value === undefined ? key : `${key}: ${value === '' ? '@' : value}`;
}

function joinPath(path: string, name: string): string {
  return path === '' ? name : `${path}\\${name}`;
}
