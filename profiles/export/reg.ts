import { COMPATIBLE } from '../../src/product.ts';
import { entryPath } from '../deployment/entry-path.ts';
import type { Part } from '../deployment/part.ts';
import type { DeploymentMembers, DeploymentTree, DeploymentValue } from '../deployment/tree.ts';
import type { Exporter, Hive } from './exporter.ts';
import { type Refuse, writingAll } from './refusal.ts';

const HIVES: Readonly<Record<Hive, string>> = { hklm: 'HKEY_LOCAL_MACHINE', hkcu: 'HKEY_CURRENT_USER' };

/** UTF-16 units that the name of a value may have here; the registry itself takes some more. */
const LONGEST_NAME = 255;
const MOST_DWORD = 0xffff_ffff;
/** What a line of the file cannot hold: control characters and half surrogate pairs. */
const UNWRITABLE = /[\p{Cc}\p{Cs}]/u;
/** Readers of text take these for an end, or for a mistake. */
const NO_CHARACTER = /\p{Noncharacter_Code_Point}/u;

/**
 * A deployment profile as the text of a registry file (tool facts, 7.4): one line per key and value, sorted, without wrapping
 * and without empty lines; line ends are LF, and nothing else in the text is a control character.
 * @throws RdError `ERR_PROFILE_INVALID` with everything that the registry cannot hold.
 */
export function regText({ members }: Pick<DeploymentTree, 'members'>, hive: Hive, part: Part): string {
  const policies = `${HIVES[hive]}\\SOFTWARE\\Policies`;
  const product = `${policies}\\${COMPATIBLE.productName}`;
  const key = `${product}\\${part}`;
  const lines = writingAll('the registry', (refuse) => memberLines(members, { key, path: '', refuse }));
  const above = lines.length === 0 ? [] : [`[${policies}]`, `[${product}]`, `[${key}]`];
  return `${['Windows Registry Editor Version 5.00', ...above, ...lines].join('\n')}\n`;
}

interface Place {
  /** Registry key. Its names are those of the schema: what a user may name is an entry of a map, and a value. */
  key: string;
  /** Setting, for messages. */
  path: string;
  refuse: Refuse;
}
type PlainValue = Exclude<DeploymentValue, { members: DeploymentMembers }>;

/** Values first: what follows the line of a sub-key belongs to the sub-key. */
function memberLines(members: DeploymentMembers, place: Place): string[] {
  refuseDoubles(members, place);
  const sorted = [...members].sort(([a], [b]) => compare(a.toLowerCase(), b.toLowerCase()));
  return [
    ...sorted.flatMap(([name, value]) => ('members' in value ? [] : [valueLine(name, value, place)])),
    ...sorted.flatMap(([name, value]) => {
      if (!('members' in value)) return [];
      const key = `${place.key}\\${name}`;
      return [`[${key}]`, ...memberLines(value.members, { ...place, key, path: entryPath(place.path, name) })];
    }),
  ];
}

/** To the registry they are one value, and the last would win. */
function refuseDoubles(members: DeploymentMembers, { path, refuse }: Place): void {
  const first = new Map<string, string>();
  for (const name of members.keys()) {
    // What one of the two makes equal may be one name to the system, whose own table is older than either.
    const forms = [`lower ${name.toLowerCase()}`, `upper ${upperCase(name)}`];
    const known = forms.map((form) => first.get(form)).find((other) => other !== undefined);
    if (known !== undefined) {
      refuse(entryPath(path, name), `its name differs from ${entryPath(path, known)} in letter case alone`);
    }
    for (const form of forms) first.set(form, name);
  }
}

/** Sign by sign, as the registry does: `ß` does not become two letters. */
function upperCase(name: string): string {
  return Array.from(name, (sign) => (sign.toUpperCase().length === sign.length ? sign.toUpperCase() : sign)).join('');
}

function valueLine(name: string, value: PlainValue, { path, refuse }: Place): string {
  const at = entryPath(path, name);
  const problem = nameProblem(name);
  if (problem !== undefined) refuse(at, `its name ${problem}`);
  return `"${escaped(name)}"=${dataOf(value, at, refuse)}`;
}

function nameProblem(name: string): string | undefined {
  if (name === '') return 'is empty, which is the name of the default value of a key';
  if (UNWRITABLE.test(name)) return 'holds a control character or half a surrogate pair';
  if (name.length > LONGEST_NAME) return `has more than ${LONGEST_NAME} UTF-16 units`;
  return undefined;
}

function dataOf(value: PlainValue, path: string, refuse: Refuse): string {
  switch (value.kind) {
    case 'boolean':
      return `dword:${value.value ? '1' : '0'}`;
    case 'integer':
      if (value.value < 0 || value.value > MOST_DWORD) {
        refuse(path, `a DWORD holds numbers from 0 to ${MOST_DWORD}`);
      }
      return `dword:${value.value.toString(16)}`;
    case 'string':
      if (value.value.includes('\0')) refuse(path, 'a string ends at a NUL character');
      return UNWRITABLE.test(value.value) || NO_CHARACTER.test(value.value)
        ? `hex(1):${bytes(`${value.value}\0`)}`
        : `"${escaped(value.value)}"`;
    case 'strings':
      for (const [index, entry] of value.value.entries()) {
        if (entry === '') refuse(`${path}[${index}]`, 'a list of strings ends at an empty one');
        else if (entry.includes('\0')) refuse(`${path}[${index}]`, 'a string ends at a NUL character');
      }
      return `hex(7):${multiString(value.value)}`;
  }
}

/** Entries end with NUL each, and the list with another one; an empty list is the last one alone. */
function multiString(entries: readonly string[]): string {
  return bytes(entries.length === 0 ? '\0' : `${entries.join('\0')}\0\0`);
}

/** UTF-16LE as pairs of hexadecimal digits. */
function bytes(text: string): string {
  return Buffer.from(text, 'utf16le')
    .toString('hex')
    .replace(/..(?!$)/g, '$&,');
}

function escaped(text: string): string {
  return text.replace(/[\\"]/g, '\\$&');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A file for the registry editor of Windows. */
export const regExporter: Exporter = {
  name: 'reg',
  platform: 'win32',
  fileName: (part) => `${part}.reg`,
  text: (tree, { hive, part }) => regText(tree, hive, part),
};
