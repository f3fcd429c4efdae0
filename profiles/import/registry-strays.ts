import { hiveName, isSameName, type RegistryKey } from '../../src/policies/registry-key.ts';
import { valueCount } from '../../src/policies/registry-policy.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { PARTS, type Part } from '../deployment/part.ts';
import type { Loss } from './importer.ts';

/** A key with its whole path. */
export interface KeyAtPath {
  path: string;
  key: RegistryKey;
}

/** Something that a file holds at a key. */
export interface Stray {
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

export function strayOf({ key, value, reason, deletion }: LeftOut): Stray {
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
export function isOurs({ key, loss }: Stray): boolean {
  const path = key.toLowerCase();
  const product = COMPATIBLE.productName.toLowerCase();
  if (path.split('\\').includes(product)) return true;
  if (loss.place !== key) return false;
  const [first = '', ...rest] = path.split('\\');
  const below = hiveName(first) === undefined ? path : rest.join('\\');
  return PROFILE_KEYS.some((each) => below === '' || each.toLowerCase().startsWith(`${below}\\`));
}

export function othersNotes(label: string, others: readonly Stray[]): string[] {
  const count = others.reduce((sum, each) => sum + each.count, 0);
  const deletions = others.filter(({ deletion }) => deletion).length;
  const what = [
    ...(count > 0 ? [counted(count, 'value')] : []),
    ...(deletions > 0 ? [counted(deletions, 'deletion')] : []),
  ];
  if (what.length === 0) return [];
  const [is, was] = count + deletions === 1 ? ['is', 'was'] : ['are', 'were'];
  return [`${label}: ${what.join(' and ')} in keys of others ${is} no part of a profile and ${was} not looked at.`];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Everything that is in no profile: the values of the keys above one, and each other key with all that is below. */
export function outside(
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
export const PROFILE_KEYS: readonly string[] = [COMPATIBLE.policyKey, COMPATIBLE.olderPolicyKey];

export function values(key: RegistryKey): string {
  return valuesText(valueCount(key));
}

export function valuesText(count: number): string {
  return ` (${counted(count, 'value')})`;
}

/** A whole key, or one value in it; the one without a name is `@`. */
export function placeOf(key: string, value?: string): string {
  return value === undefined ? key : `${key}: ${value === '' ? '@' : value}`;
}

export function joined(path: string, name: string): string {
  return path === '' ? name : `${path}\\${name}`;
}
