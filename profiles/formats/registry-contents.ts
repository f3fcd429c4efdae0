import { isDeepStrictEqual } from 'node:util';
import { COMPATIBLE } from '../../src/product.ts';
import { isSameName, keyAt, type RegistryKey, type RegistryValue, subKey } from './registry.ts';

/** Maximum names in the path of a key; one of a profile has ten at most. */
const MAX_NAMES = 64;
/** Maximum keys and values of the application in one file; two profiles with every setting have some hundreds. */
const MAX_ENTRIES = 5000;

/** Whether a key is the application's or below it, at any location. */
export function isOfApplication(names: readonly string[]): boolean {
  return names.some((name) => isSameName(name, COMPATIBLE.productName));
}

/** The registry contents that a file sets: the keys of the application as written, and only the number of values of all others. */
export class RegistryContents {
  /** Number of values by the path of their key, as written. */
  readonly otherPrograms = new Map<string, number>();
  private readonly root: RegistryKey = { name: '', values: [], keys: [] };
  private readonly isWanted: (names: readonly string[]) => boolean;
  private entries = 0;

  /** @param isWanted whether a key is kept, by its path with the hive. */
  constructor(isWanted = isOfApplication) {
    this.isWanted = isWanted;
  }

  /** The hives, in the order of their first occurrence. */
  get hives(): readonly RegistryKey[] {
    return this.root.keys;
  }

  /**
   * Adds a key, or a value in it. Returns a clause for one that cannot be added: a value that the file has set differently before, or a path that the
   * registry cannot have.
   * @param names names of the key; the first one is the hive.
   */
  add(names: readonly string[], value?: RegistryValue): string | undefined {
    if (!this.isWanted(names)) {
      this.addOther(names, value ? 1 : 0);
      return undefined;
    }
    if (names.length > MAX_NAMES) return `the path has more than ${MAX_NAMES} names`;
    if (names.slice(1).includes('')) return 'the path contains an empty name';
    this.entries += 1;
    if (this.entries > MAX_ENTRIES) return `the file has more than ${MAX_ENTRIES} keys and values of the application`;
    const { values } = keyAt(this.root, names);
    if (!value) return undefined;
    const before = values.find(({ name }) => isSameName(name, value.name));
    if (!before) values.push(value);
    else if (before.type !== value.type || !isDeepStrictEqual(before.data, value.data)) {
      return 'the file sets this value twice, differently';
    }
    return undefined;
  }

  private addOther(names: readonly string[], values: number): void {
    const path = names.filter((name) => name !== '').join('\\');
    this.otherPrograms.set(path, (this.otherPrograms.get(path) ?? 0) + values);
  }

  /** Returns a key, if it was added. */
  find([hive = '', ...names]: readonly string[]): RegistryKey | undefined {
    let key = subKey(this.root, hive);
    for (const name of names) key = key && subKey(key, name);
    return key;
  }
}
