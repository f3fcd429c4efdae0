import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { Part } from '../deployment/part.ts';
import type { DeploymentMembers, DeploymentTree, DeploymentValue } from '../deployment/tree.ts';
import type { Exporter, Hive } from './exporter.ts';

const HIVES: Readonly<Record<Hive, string>> = { hklm: 'HKEY_LOCAL_MACHINE', hkcu: 'HKEY_CURRENT_USER' };

/**
 * A deployment profile as the text of a registry file (cli facts, 7.4): one line per key and value, sorted, without wrapping
 * and without empty lines; line ends are LF.
 * @throws RdError `ERR_PROFILE_INVALID` with every value that the registry cannot hold.
 */
export function regText({ members }: Pick<DeploymentTree, 'members'>, hive: Hive, part: Part): string {
  const policies = `${HIVES[hive]}\\SOFTWARE\\Policies`;
  const product = `${policies}\\${COMPATIBLE.productName}`;
  const writing: Writing = { lines: [], problems: [] };
  writeMembers(members, { key: `${product}\\${part}`, path: '' }, writing);
  const [first] = writing.problems;
  if (first !== undefined) {
    if (writing.problems.length === 1) throw new RdError('ERR_PROFILE_INVALID', first);
    throw new RdError('ERR_PROFILE_INVALID', 'the settings hold values that the registry cannot hold:', {
      details: writing.problems,
    });
  }
  const above = writing.lines.length === 0 ? [] : [`[${policies}]`, `[${product}]`, `[${product}\\${part}]`];
  return `${['Windows Registry Editor Version 5.00', ...above, ...writing.lines].join('\n')}\n`;
}

interface Writing {
  lines: string[];
  problems: string[];
}
interface Place {
  /** Registry key. */
  key: string;
  /** Setting, for messages. */
  path: string;
}

/** Values first: what follows the line of a sub-key belongs to the sub-key. */
function writeMembers(members: DeploymentMembers, place: Place, writing: Writing): void {
  const sorted = [...members].sort(([a], [b]) => compare(a.toLowerCase(), b.toLowerCase()));
  const inner = sorted.flatMap(([name, value]) => ('members' in value ? [[name, value] as const] : []));
  for (const [name, value] of sorted) {
    if (!('members' in value)) writeValue(name, value, place, writing);
  }
  for (const [name, { members: below }] of inner) {
    const path = place.path === '' ? name : `${place.path}.${name}`;
    if (/[\\\p{Cc}]/u.test(name)) {
      writing.problems.push(`${path}: the name of a registry key cannot hold a backslash or a control character`);
      continue;
    }
    const key = `${place.key}\\${name}`;
    writing.lines.push(`[${key}]`);
    writeMembers(below, { key, path }, writing);
  }
}

function writeValue(
  name: string,
  value: Exclude<DeploymentValue, { members: DeploymentMembers }>,
  place: Place,
  writing: Writing,
): void {
  const path = place.path === '' ? name : `${place.path}.${name}`;
  const data = CONTROL.test(name) ? { problem: 'its name holds a control character' } : dataOf(value);
  if ('problem' in data) writing.problems.push(`${path}: ${data.problem}`);
  else writing.lines.push(`"${escaped(name)}"=${data.text}`);
}

const CONTROL = /\p{Cc}/u;
const MOST_DWORD = 0xffff_ffff;

type Data = { text: string } | { problem: string };

function dataOf(value: Exclude<DeploymentValue, { members: DeploymentMembers }>): Data {
  switch (value.kind) {
    case 'boolean':
      return { text: `dword:${value.value ? '1' : '0'}` };
    case 'integer':
      if (value.value < 0 || value.value > MOST_DWORD) {
        return { problem: `expected a number from 0 to ${MOST_DWORD}, which is what a DWORD holds` };
      }
      return { text: `dword:${value.value.toString(16)}` };
    case 'string':
      if (value.value.includes('\0')) return { problem: 'expected a string without NUL characters' };
      // A line of the file cannot hold control characters: such a string is written as its bytes.
      return { text: CONTROL.test(value.value) ? `hex(1):${bytes(`${value.value}\0`)}` : `"${escaped(value.value)}"` };
    case 'strings':
      if (value.value.some((entry) => entry.includes('\0')))
        return { problem: 'expected strings without NUL characters' };
      return { text: `hex(7):${multiString(value.value)}` };
  }
}

/** Entries end with NUL each, and the list with another one; an empty list is the last one alone. */
function multiString(entries: readonly string[]): string {
  const joined = entries.join('\0');
  return joined === '' ? bytes('\0') : bytes(`${joined}\0\0`);
}

/** UTF-16LE as pairs of hexadecimal digits. */
function bytes(text: string): string {
  return [...Buffer.from(text, 'utf16le')].map((byte) => byte.toString(16).padStart(2, '0')).join(',');
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
