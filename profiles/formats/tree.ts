import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { membersOfToday, type SettingMember } from '../../src/settings/fields.ts';
import { own } from '../../src/settings/own.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';

/**
 * The content of a deployment profile. Sections and settings maps are `Map` objects, because any text may be the name of an entry, even
 * `__proto__`.
 */
export type DeploymentValue = boolean | number | string | readonly string[] | DeploymentTree;
/** Members in schema order, starting with the version; map entries are sorted. */
export type DeploymentTree = ReadonlyMap<string, DeploymentValue>;

/**
 * Returns the tree of a deployment profile, with the names of its version. A profile without a version gets the newest one.
 * @param settings checked, without unknown names, `null` and empty sections, as `selectSettings` returns them.
 */
export async function deploymentTree(settings: JsonObject): Promise<DeploymentTree> {
  const { version = SCHEMA_VERSION, ...rest } = settings;
  return section({ version, ...rest }, [
    { name: 'version', kind: 'ended' },
    ...(await membersAt(Number(version))).filter(({ name }) => name !== 'version'),
  ]);
}

/**
 * Returns the names in a version; later versions get the newest names. The shapes of older versions are large and rarely needed, so they are loaded
 * on demand.
 */
export async function membersAt(version: number): Promise<SettingMember[]> {
  if (version >= SCHEMA_VERSION) return membersOfToday();
  const { membersOfVersion } = await import('../../src/settings/members.ts');
  return membersOfVersion(version);
}

function section(object: JsonObject, members: readonly SettingMember[]): DeploymentTree {
  const tree = new Map<string, DeploymentValue>();
  for (const member of members) {
    const value = own(object, member.name);
    if (value === undefined) continue;
    const isSection = member.kind === 'section' && isObject(value);
    tree.set(member.name, isSection ? section(value, member.members) : settingValue(value));
  }
  return tree;
}

function settingValue(value: JsonValue): DeploymentValue {
  if (isObject(value)) {
    return new Map(sortByName(Object.entries(value)).map(([name, entry]) => [name, settingValue(entry)]));
  }
  if (Array.isArray(value)) return value.map(String);
  if (value === null) throw new Error('null is in no deployment profile');
  return value;
}

export function isTree(value: DeploymentValue): value is DeploymentTree {
  return value instanceof Map;
}

/** Sorts named pairs in the compatible tool's order: by the code points of the lowercased names. */
export function sortByName<T>(pairs: Iterable<readonly [string, T]>): [string, T][] {
  const keyed = Array.from(pairs, ([name, value]) => ({ name, value, key: lowerCase(name) }));
  // UTF-16 units sort differently from code points, except for ASCII, which covers nearly all names.
  const compare = keyed.every(({ key }) => ASCII.test(key)) ? byUnits : byCodePoints;
  return keyed.sort((a, b) => compare(a.key, b.key) || byUnits(a.name, b.name)).map(({ name, value }) => [name, value]);
}

const ASCII = /^[\0-\x7f]*$/;

/** Lowercases each character on its own and to a single character: no final sigma, and `i` for `İ`. */
function lowerCase(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  return Array.from(name, (char) => String.fromCodePoint(char.toLowerCase().codePointAt(0) ?? 0)).join('');
}

function byUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Compares by UTF-8 bytes, which sort like code points. */
function byCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Matches characters that a terminal interprets, invisible characters, and unpaired surrogates. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/u;
const HIDDEN_UNITS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ud800-\udfff\ufffe\uffff]/gu;
const MAX_KEY = 80;

/** Returns the dotted path of a map entry or an unknown name, for messages: `WSL.integrations.Ubuntu`, `WSL.integrations["a\nb"]`. */
export function entryPath(path: string, key: string): string {
  if (key !== '' && key.length <= MAX_KEY && !HIDDEN.test(key)) return path === '' ? key : `${path}.${key}`;
  const short = key.length <= MAX_KEY ? key : `${key.slice(0, MAX_KEY)}…`;
  const shown = JSON.stringify(short).replace(HIDDEN_UNITS, (characters) =>
    Array.from(
      { length: characters.length },
      (_, at) => `\\u${characters.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
  return `${path}[${shown}]`;
}
