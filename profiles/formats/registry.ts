/** A value of the registry. `type` is the name of its type, such as `REG_SZ`. */
export interface RegistryValue {
  name: string;
  type: string;
  /** A text, a number, or a list of texts for `REG_MULTI_SZ`; undefined for a type that is not decoded. */
  data: string | number | string[] | undefined;
}

/** A key and its contents. Names keep their case, but those that differ only in case are the same. */
export interface RegistryKey {
  name: string;
  values: RegistryValue[];
  keys: RegistryKey[];
}

/** Returns the sub-key of that name. */
export function subKey(key: RegistryKey, name: string): RegistryKey | undefined {
  return key.keys.find((each) => isSameName(each.name, name));
}

/** Returns the key at a path below `root`, created if it is missing. */
export function keyAt(root: RegistryKey, names: readonly string[]): RegistryKey {
  let key = root;
  for (const name of names) {
    let next = subKey(key, name);
    if (!next) {
      next = { name, values: [], keys: [] };
      key.keys.push(next);
    }
    key = next;
  }
  return key;
}

export function isSameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

const HIVES: Readonly<Record<string, string>> = {
  HKEY_LOCAL_MACHINE: 'HKLM',
  HKEY_CURRENT_USER: 'HKCU',
  HKEY_USERS: 'HKU',
  HKEY_CLASSES_ROOT: 'HKCR',
  HKEY_CURRENT_CONFIG: 'HKCC',
};

/** Returns the long name of a hive, given either of its names; undefined for anything else. */
export function hiveName(name: string): string | undefined {
  const upper = name.toUpperCase();
  return Object.entries(HIVES).find(([long, short]) => upper === long || upper === short)?.[0];
}

/** Returns the names of a key below `root` (`HKLM\…`), with the hive's name in either form; undefined for a key elsewhere. */
export function namesBelow(root: string, path: string): string[] | undefined {
  const wanted = shortHive(root).split('\\');
  const names = shortHive(path).split('\\');
  const below = wanted.every((name, index) => isSameName(name, names[index] ?? ''));
  return below ? names.slice(wanted.length) : undefined;
}

function shortHive(path: string): string {
  const [hive = '', ...rest] = path.split('\\');
  const long = hiveName(hive);
  return [(long && HIVES[long]) ?? hive, ...rest].join('\\');
}

/** Names of value types by number, from `winnt.h`. */
const TYPES = [
  'REG_NONE',
  'REG_SZ',
  'REG_EXPAND_SZ',
  'REG_BINARY',
  'REG_DWORD',
  'REG_DWORD_BIG_ENDIAN',
  'REG_LINK',
  'REG_MULTI_SZ',
  'REG_RESOURCE_LIST',
  'REG_FULL_RESOURCE_DESCRIPTOR',
  'REG_RESOURCE_REQUIREMENTS_LIST',
  'REG_QWORD',
] as const;

/** Returns the name of a type: `REG_SZ`; `type 4096` for a number without a name. */
export function typeName(type: number): string {
  return TYPES[type] ?? `type ${type}`;
}

/** Decodes the bytes of a value; returns undefined for a type that is not decoded, or bytes that do not fit the type. */
export function dataOf(type: string, bytes: Buffer): RegistryValue['data'] {
  switch (type) {
    case 'REG_SZ':
      return withoutEnd(wideText(bytes));
    case 'REG_DWORD':
      return bytes.length === 4 ? bytes.readUInt32LE() : undefined;
    case 'REG_DWORD_BIG_ENDIAN':
      return bytes.length === 4 ? bytes.readUInt32BE() : undefined;
    case 'REG_MULTI_SZ':
      return textsOf(wideText(bytes));
    default:
      return undefined;
  }
}

/** Decodes UTF-16LE, preserving unpaired surrogates; returns undefined if a byte is left over. */
function wideText(bytes: Buffer): string | undefined {
  return bytes.length % 2 === 0 ? bytes.toString('utf16le') : undefined;
}

/** Returns a text without the NULs at its end. */
function withoutEnd(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  let end = text.length;
  while (text[end - 1] === '\0') end -= 1;
  return text.slice(0, end);
}

/** Splits a list: each text ends with a NUL, and the list with one more. */
function textsOf(joined: string | undefined): string[] | undefined {
  if (joined === undefined) return undefined;
  const body = joined.replace(/\0$/, '');
  if (body === '') return [];
  return body.replace(/\0$/, '').split('\0');
}

/** Largest number of a DWORD. */
export const MAX_DWORD = 0xffff_ffff;
/** UTF-16 units that the name of a value may have here; the registry itself permits some more. */
const MAX_NAME = 255;
/** Matches characters that a line of a registry file cannot hold: control characters and unpaired surrogates. */
export const UNWRITABLE = /[\p{Cc}\p{Cs}]/u;

/** Returns the reason why a value cannot have that name, to follow `its name`. */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'is empty, which is the name of the default value of a key';
  if (UNWRITABLE.test(name)) return 'contains a control character or an unpaired surrogate';
  if (name.length > MAX_NAME) return `has more than ${MAX_NAME} UTF-16 units`;
  return undefined;
}

/** Returns the reason why no DWORD holds a number, as a clause. */
export function numberProblem(value: number): string | undefined {
  const whole = Number.isInteger(value) && value >= 0 && value <= MAX_DWORD;
  return whole ? undefined : `a DWORD holds numbers from 0 to ${MAX_DWORD}`;
}

/** Returns the reason why no REG_SZ holds a text, as a clause. */
export function textProblem(text: string): string | undefined {
  return text.includes('\0') ? 'a string ends at a NUL character' : undefined;
}

/** Returns the reason why no REG_MULTI_SZ holds a text as an entry, as a clause. */
export function entryProblem(entry: string): string | undefined {
  return entry === '' ? 'a list of strings ends at an empty one' : textProblem(entry);
}

/**
 * The names in one key, compared like the registry, for which some of them are one value, and the last would win. Names that are equal in either
 * letter case count as one, because the system's own table is older than either.
 */
export class ValueNames {
  readonly #first = new Map<string, string>();

  /** Adds a name; returns the last added one that differs from it only in letter case. */
  add(name: string): string | undefined {
    const forms = [`lower ${name.toLowerCase()}`, `upper ${upperCase(name)}`];
    const known = forms.map((form) => this.#first.get(form)).find((other) => other !== undefined);
    for (const form of forms) this.#first.set(form, name);
    return known;
  }
}

/** Converts to upper case character by character, like the registry: `ß` does not become two letters. */
function upperCase(name: string): string {
  return Array.from(name, (char) => (char.toUpperCase().length === char.length ? char.toUpperCase() : char)).join('');
}
