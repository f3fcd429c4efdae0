import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { type ImportedPart, type Loss, PARTS, type Part } from './format.ts';
import { hiveName, isSameName, type RegistryKey, subKey } from './registry.ts';
import { type RegistryFinding, type RegistrySettings, registrySettings, valueCount } from './registry-settings.ts';

interface PartAtPath extends KeyAtPath, RegistrySettings {
  part: Part;
}

/** An error lists at most this many losses. */
const MAX_LISTED = 20;

/**
 * The deployment profiles in hives of a registry as the application finds them: both come from the first place that has
 * either. Whatever else is in keys of the application is lost, and reported with its reason beside the first part; values of other
 * products are counted in a note.
 * @param label of the file.
 * @param hives by their long names; an empty name for one that is not known.
 * @throws RdError `ERR_PROFILE_INVALID` when no value in them is a setting of a profile.
 */
export function registryParts(label: string, hives: readonly RegistryKey[], left: readonly LeftOut[]): ImportedPart[] {
  const roots = hives.flatMap(rootsOf);
  const places = placesIn(roots);
  const { kept, rest } = choose(places);
  const parents = new Set(roots.flatMap(parentsOf));
  const profiles = new Set(places.flatMap(({ key }) => PARTS.map((part) => subKey(key, part))));
  const strays = [...left.map(strayOf), ...roots.flatMap((root) => outside(root, parents, profiles))];
  if (kept.length === 0) throw noProfile(label, [...rest, ...strays.map(({ loss }) => loss)]);
  const own = strays.filter(isOfApplication);
  const notes = otherProgramsNotes(
    label,
    strays.filter((stray) => !isOfApplication(stray)),
  );
  const general = [...rest, ...own.map(({ loss }) => loss)];
  return kept.map((part, index) =>
    index === 0
      ? { ...imported(part, `${label}: ${part.path}`, general), ...(notes.length > 0 ? { notes } : {}) }
      : imported(part, `${label}: ${part.path}`, []),
  );
}

/** The profiles at one place of a registry, a key such as `HKLM\SOFTWARE\Policies\Rancher Desktop`; none where nothing in it counts. */
export function partsAtKey(place: KeyAtPath): ImportedPart[] {
  const { kept, rest } = choose([place]);
  const profiles = new Set(PARTS.map((part) => subKey(place.key, part)));
  const general = [...rest, ...outside(place, new Set(), profiles).map(({ loss }) => loss)];
  return kept.map((part, index) => imported(part, part.path, index === 0 ? general : []));
}

/** The parts of the first place that has one, and why each other key is passed over. */
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

/** One of another type is no version, and not a missing one: what the rest means is not known. */
function withVersion(read: RegistrySettings, { values }: RegistryKey): RegistrySettings {
  const version = values.find(({ name }) => isSameName(name, 'version'));
  if (!version || read.settings.version !== undefined) return read;
  const findings = read.findings.filter(({ names }) => names.join('.') !== 'version');
  return { ...read, settings: { ...read.settings, version: version.data ?? null }, findings };
}

function imported(
  { part, path, settings, findings }: PartAtPath,
  source: string,
  general: readonly Loss[],
): ImportedPart {
  const lost = [...findings.map((finding) => lossOf(path, finding)), ...general];
  return { part, source, settings, lost };
}

/** Where profiles may be. Each user in `HKEY_USERS` has the places of `HKEY_CURRENT_USER`. */
function rootsOf(hive: RegistryKey): KeyAtPath[] {
  const root = { path: hive.name, key: hive };
  if (hive.name !== 'HKEY_USERS') return [root];
  const users = hive.keys.map((key) => ({ path: `${hive.name}\\${key.name}`, key }));
  return [{ path: hive.name, key: { ...hive, keys: [] } }, ...users];
}

/** In the order in which the application looks: policies before older profiles, the computer before its users. */
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

/** The keys from the root to the path, as far as they are there. */
function pathBelow(root: KeyAtPath, path: string): KeyAtPath[] {
  const found = [root];
  let at: KeyAtPath | undefined = root;
  for (const name of path.split('\\')) {
    const key: RegistryKey | undefined = at && subKey(at.key, name);
    at = key && { path: joined(at?.path ?? '', key.name), key };
    if (at) found.push(at);
  }
  return found;
}

function parentsOf(root: KeyAtPath): RegistryKey[] {
  return PROFILE_KEYS.flatMap((path) => pathBelow(root, path).map(({ key }) => key));
}

/** @param ignored no value of the profile means anything, so that the application neither takes nor refuses it. */
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

/** The kind alone: a value may be a secret, or long. */
function foundText({ expected, type }: { expected: string; type: string }): string {
  if (type === 'key') return 'a key';
  return expected === 'boolean' && type.startsWith('REG_DWORD') ? `${type} other than 0 and 1` : type;
}

function noProfile(label: string, lost: readonly Loss[]): RdError {
  const listed = lost
    .slice(0, MAX_LISTED)
    // Names come from the file, and must not reach the terminal as they are.
    .map(({ place, reason }) => formatFinding({ pointer: '', message: `${place}: ${reason}` }));
  const more = lost.length - listed.length;
  return new RdError('ERR_PROFILE_INVALID', `${label} contains no deployment profile`, {
    details: more > 0 ? [...listed, `and ${more} more`] : listed,
    advice: `A profile is in the keys Locked and Defaults below ${COMPATIBLE.policyKey}.`,
  });
}

/** A key with its whole path. */
export interface KeyAtPath {
  path: string;
  key: RegistryKey;
}

/** Something that a file holds at a key. */
interface Stray {
  /** Path of the key. */
  key: string;
  loss: Loss;
  /** How many values it stands for; a deletion is none. */
  count: number;
  deletion?: true;
}

/** What the reader of a file left out: at a key, of one value in it or of the whole. */
export interface LeftOut {
  key: string;
  value?: string;
  reason: string;
  /** It is an instruction to delete, and no value. */
  deletion?: true;
}

function strayOf({ key, value, reason, deletion }: LeftOut): Stray {
  const loss = { place: placeOf(key, value), reason };
  return deletion ? { key, loss, count: 0, deletion } : { key, loss, count: 1 };
}

/** The profile that the place of a loss is in; none for one outside of both. */
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

/** In a key of the application, wherever that is; of a whole key, also one around a profile. */
function isOfApplication({ key, loss }: Stray): boolean {
  const path = key.toLowerCase();
  const product = COMPATIBLE.productName.toLowerCase();
  if (path.split('\\').includes(product)) return true;
  if (loss.place !== key) return false;
  const [first = '', ...rest] = path.split('\\');
  const below = hiveName(first) === undefined ? path : rest.join('\\');
  return PROFILE_KEYS.some((each) => below === '' || each.toLowerCase().startsWith(`${below}\\`));
}

function otherProgramsNotes(label: string, others: readonly Stray[]): string[] {
  const count = others.reduce((sum, each) => sum + each.count, 0);
  const deletions = others.filter(({ deletion }) => deletion).length;
  const what = [
    ...(count > 0 ? [counted(count, 'value')] : []),
    ...(deletions > 0 ? [counted(deletions, 'deletion')] : []),
  ];
  if (what.length === 0) return [];
  const [is, was] = count + deletions === 1 ? ['is', 'was'] : ['are', 'were'];
  return [`${label}: ${what.join(' and ')} in keys of other programs ${is} not part of a profile and ${was} ignored.`];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Everything that is in no profile: the values of the keys above one, and each other key with all that is below. */
function outside(
  { path, key }: KeyAtPath,
  parents: ReadonlySet<RegistryKey>,
  profiles: ReadonlySet<RegistryKey | undefined>,
): Stray[] {
  return [
    ...key.values.map(({ name }) => ({ key: path, loss: { place: placeOf(path, name), reason: NOT_PART }, count: 1 })),
    ...key.keys.flatMap((below) => {
      const place = joined(path, below.name);
      if (profiles.has(below)) return [];
      // A profile at a wrong place is not hidden by what is around it.
      if (parents.has(below) || (below.keys.some(holdsOurs) && !isProduct(below)))
        return outside({ path: place, key: below }, parents, profiles);
      return [{ key: place, loss: { place, reason: `${NOT_PART}${values(below)}` }, count: valueCount(below) }];
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

/** Below a hive; the first one wins. */
const PROFILE_KEYS: readonly string[] = [COMPATIBLE.policyKey, COMPATIBLE.olderPolicyKey];

function values(key: RegistryKey): string {
  return valuesText(valueCount(key));
}

function valuesText(count: number): string {
  return ` (${counted(count, 'value')})`;
}

/** A whole key, or one value in it; the one without a name is `@`. */
function placeOf(key: string, value?: string): string {
  return value === undefined ? key : `${key}: ${value === '' ? '@' : value}`;
}

function joined(path: string, name: string): string {
  return path === '' ? name : `${path}\\${name}`;
}
