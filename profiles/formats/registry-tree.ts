import type { RegistryKey, RegistryValue } from './registry.ts';

/** The same, with the place in the file where it was set last: a line, or the offset of a byte. */
interface PlacedValue extends RegistryValue {
  at: number;
}

/** Something in a file that is not among the values read from it. */
export interface Dropped {
  at: number;
  /** Path of the key with its hive. */
  key: string;
  /** Name of the value; absent where it is about the whole key. */
  value?: string;
  /** A clause: `it is set again in line 7`. */
  reason: string;
  /** It is an instruction to delete, and no value. */
  deletion?: true;
}

/** Most names in a path, and most characters in one name; the registry has no more. */
const MAX_NAMES = 512;
const MAX_CHARACTERS = 255;
const MAX_VALUE_NAME = 16_383;
/** Most keys that one file may make; what is below a profile has some dozens. */
const MAX_KEYS = 200_000;

/** The file names more keys than a tree takes; the message is a clause. */
export class TooManyKeys extends Error {
  constructor() {
    super(`it names more than ${MAX_KEYS} keys`);
  }
}

interface Node {
  name: string;
  path: string;
  /** Made on first use: most keys of a deep path have only one of the two. */
  values?: Map<string, PlacedValue>;
  keys?: Map<string, Node>;
}

/**
 * What a computer's registry would hold after a file is read into an empty one: keys of the same name are one, a later value
 * replaces an earlier one, and deletions delete. Work and memory grow with what is put in, whatever the names; a short line may
 * name many keys, which are counted.
 */
export class RegistryTree {
  readonly dropped: Dropped[] = [];
  private readonly root: Node = { name: '', path: '' };
  /** How a place is called in reasons: `line 7`. */
  private readonly placeOf: (at: number) => string;
  /** Keys made so far, those that were deleted again too. */
  private made = 0;

  constructor(placeOf: (at: number) => string) {
    this.placeOf = placeOf;
  }

  /**
   * Makes the key and those above it. The first name is the hive.
   * @throws TooManyKeys
   */
  key(names: readonly string[]): void {
    this.nodeAt(names);
  }

  /** @throws TooManyKeys */
  set(names: readonly string[], value: PlacedValue): void {
    const at = this.nodeAt(names);
    at.values ??= new Map();
    const { path, values } = at;
    const lower = value.name.toLowerCase();
    const before = values.get(lower);
    if (before) this.drop(path, before, `it is set again in ${this.placeOf(value.at)}`);
    values.set(lower, value);
  }

  has(names: readonly string[], name: string): boolean {
    return this.find(names)?.values?.has(name.toLowerCase()) ?? false;
  }

  deleteValue(names: readonly string[], name: string, at: number): void {
    const found = this.find(names);
    const before = found?.values?.get(name.toLowerCase());
    if (found && before) {
      this.drop(found.path, before, `${this.placeOf(at)} deletes it`);
      found.values?.delete(name.toLowerCase());
    }
    this.dropped.push({ at, key: found?.path ?? pathOf(names), value: name, reason: DELETION, deletion: true });
  }

  deleteValues(names: readonly string[], at: number): void {
    const found = this.find(names);
    for (const value of found?.values?.values() ?? []) {
      this.drop(found?.path ?? '', value, `${this.placeOf(at)} deletes all values of the key`);
    }
    found?.values?.clear();
    this.dropped.push({
      at,
      key: found?.path ?? pathOf(names),
      reason: 'it deletes all values of the key',
      deletion: true,
    });
  }

  deleteKey(names: readonly string[], at: number): void {
    const found = this.find(names);
    if (found) this.dropAll(found, `${this.placeOf(at)} deletes its key`);
    this.find(names.slice(0, -1))?.keys?.delete((names.at(-1) ?? '').toLowerCase());
    this.dropped.push({ at, key: found?.path ?? pathOf(names), reason: DELETION, deletion: true });
  }

  /** The hives, in the order in which they were named first. */
  hives(): RegistryKey[] {
    return keyOf(this.root).keys;
  }

  /** Records anything else that does not become a value. */
  leaveOut(names: readonly string[], dropped: Omit<Dropped, 'key'>): void {
    this.dropped.push({ key: this.find(names)?.path ?? pathOf(names), ...dropped });
  }

  private drop(key: string, { at, name }: PlacedValue, reason: string): void {
    this.dropped.push({ at, key, value: name, reason });
  }

  private dropAll(below: Node, reason: string): void {
    for (const value of below.values?.values() ?? []) this.drop(below.path, value, reason);
    for (const key of below.keys?.values() ?? []) this.dropAll(key, reason);
  }

  private find(names: readonly string[]): Node | undefined {
    let found: Node | undefined = this.root;
    for (const name of names) found = found?.keys?.get(name.toLowerCase());
    return found;
  }

  private nodeAt(names: readonly string[]): Node {
    let at = this.root;
    for (const name of names) {
      const lower = name.toLowerCase();
      at.keys ??= new Map();
      let next = at.keys.get(lower);
      if (!next) {
        this.made += 1;
        if (this.made > MAX_KEYS) throw new TooManyKeys();
        next = { name, path: at.path === '' ? name : `${at.path}\\${name}` };
        at.keys.set(lower, next);
      }
      at = next;
    }
    return at;
  }
}

/** A hive that is not known has an empty name. */
function pathOf(names: readonly string[]): string {
  return names.filter((name) => name !== '').join('\\');
}

const DELETION = 'it is a deletion, and profiles can only set values';

/** Why the registry cannot have a key of that path, as a clause; `undefined` when it can. */
export function pathProblem(names: readonly string[]): string | undefined {
  if (names.length > MAX_NAMES) return `the path has more than ${MAX_NAMES} names`;
  if (names.some((name) => name === '')) return 'the path contains an empty name';
  const long = names.some((name) => name.length > MAX_CHARACTERS);
  return long ? `a key has a name of more than ${MAX_CHARACTERS} characters` : undefined;
}

/** The same for the name of a value. */
export function valueNameProblem(name: string): string | undefined {
  return name.length > MAX_VALUE_NAME ? `its name has more than ${MAX_VALUE_NAME} characters` : undefined;
}

/** At most `MAX_NAMES` deep. */
function keyOf({ name, values, keys }: Node): RegistryKey {
  return {
    name,
    values: [...(values?.values() ?? [])].map(({ name, type, data }) => ({ name, type, data })),
    keys: [...(keys?.values() ?? [])].map(keyOf),
  };
}
