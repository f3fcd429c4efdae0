import { COMPATIBLE } from '../../src/product.ts';
import { entryPath } from '../deployment/entry-path.ts';
import { sortedByName } from '../deployment/name-order.ts';
import type { Part } from '../deployment/part.ts';
import type { DeploymentMembers, DeploymentTree, DeploymentValue } from '../deployment/tree.ts';
import type { Exporter, Hive } from './exporter.ts';
import { type Refuse, writingAll } from './refusal.ts';
import { entryProblem, nameProblem, numberProblem, textProblem, UNWRITABLE, ValueNames } from './registry-limits.ts';

const HIVES: Readonly<Record<Hive, string>> = { hklm: 'HKEY_LOCAL_MACHINE', hkcu: 'HKEY_CURRENT_USER' };

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
  const sorted = sortedByName(members);
  return [
    ...sorted.flatMap(([name, value]) => ('members' in value ? [] : [valueLine(name, value, place)])),
    ...sorted.flatMap(([name, value]) => {
      if (!('members' in value)) return [];
      const key = `${place.key}\\${name}`;
      return [`[${key}]`, ...memberLines(value.members, { ...place, key, path: entryPath(place.path, name) })];
    }),
  ];
}

function refuseDoubles(members: DeploymentMembers, { path, refuse }: Place): void {
  const names = new ValueNames();
  for (const name of members.keys()) {
    const known = names.add(name);
    if (known !== undefined) {
      refuse(entryPath(path, name), `its name differs from ${entryPath(path, known)} in letter case alone`);
    }
  }
}

function valueLine(name: string, value: PlainValue, { path, refuse }: Place): string {
  const at = entryPath(path, name);
  const problem = nameProblem(name);
  if (problem !== undefined) refuse(at, `its name ${problem}`);
  return `"${escaped(name)}"=${dataOf(value, at, refuse)}`;
}

function dataOf(value: PlainValue, path: string, refuse: Refuse): string {
  switch (value.kind) {
    case 'boolean':
      return `dword:${value.value ? '1' : '0'}`;
    case 'integer':
      refuseFor(numberProblem(value.value), path, refuse);
      return `dword:${value.value.toString(16)}`;
    case 'string':
      refuseFor(textProblem(value.value), path, refuse);
      return UNWRITABLE.test(value.value) || NO_CHARACTER.test(value.value)
        ? `hex(1):${bytes(`${value.value}\0`)}`
        : `"${escaped(value.value)}"`;
    case 'strings':
      for (const [index, entry] of value.value.entries()) refuseFor(entryProblem(entry), `${path}[${index}]`, refuse);
      return `hex(7):${multiString(value.value)}`;
  }
}

function refuseFor(problem: string | undefined, path: string, refuse: Refuse): void {
  if (problem !== undefined) refuse(path, problem);
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

/** A file for the registry editor of Windows. */
export const regExporter: Exporter = {
  name: 'reg',
  platform: 'win32',
  fileName: (part, hive) => (hive === 'hkcu' ? `${part}.hkcu.reg` : `${part}.reg`),
  text: (tree, { hive, part }) => regText(tree, hive, part),
};
