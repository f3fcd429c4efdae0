/** A value of the registry, with the name of its type: `REG_SZ`. */
export interface RegistryValue {
  name: string;
  type: string;
  /** A text, a number, or a list of texts for `REG_MULTI_SZ`; `undefined` for a type that is not looked into. */
  data: string | number | string[] | undefined;
}

/** A key with what is in it. Names keep their letters; letter case does not tell two apart. */
export interface RegistryKey {
  name: string;
  values: RegistryValue[];
  keys: RegistryKey[];
}

/** The sub-key of that name. */
export function subKey(key: RegistryKey, name: string): RegistryKey | undefined {
  return key.keys.find((each) => isSameName(each.name, name));
}

/** The key at a path below `root`, made where it is missing. */
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

/** The long name of a hive that is given by either of its names; `undefined` for anything else. */
export function hiveName(name: string): string | undefined {
  const upper = name.toUpperCase();
  return Object.entries(HIVES).find(([long, short]) => upper === long || upper === short)?.[0];
}

/** The path of a key below `root` (`HKLM\…`), whatever the length of the hive's name; `undefined` for one that is elsewhere. */
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
