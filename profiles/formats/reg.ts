import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { collectingRefusals, type Exporter, type Hive, type Importer, type Part, type Refuse } from './format.ts';
import { isRegistryFile, RegistryFileProblem, registryEntries, registryText } from './reg-file.ts';
import {
  entryProblem,
  hiveName,
  nameProblem,
  namesBelow,
  numberProblem,
  type RegistryKey,
  textProblem,
  UNWRITABLE,
  ValueNames,
} from './registry.ts';
import { RegistryContents } from './registry-contents.ts';
import { type DeploymentTree, type DeploymentValue, entryPath, isTree, sortByName } from './tree.ts';

/** Reads a file of the Windows registry editor. */
export const regImporter: Importer = {
  name: 'reg',
  platform: 'win32',
  recognizes: isRegistryFile,
  async read(bytes, label) {
    const contents = new RegistryContents();
    let open: boolean;
    try {
      open = readInto(contents, bytes).open;
    } catch (cause) {
      if (!(cause instanceof RegistryFileProblem)) throw cause;
      const place = cause.line === undefined ? label : `${label}:${cause.line}`;
      throw new RdError('ERR_PROFILE_INVALID', `${place}: ${cause.message}`, {
        cause,
        advice: 'Correct the file, or export the key again with `reg export`.',
      });
    }
    // Loaded on demand: it contains the shapes of all versions, which would take most of the time of an export.
    const { registryParts } = await import('./registry-parts.ts');
    const parts = registryParts(label, contents);
    if (!open) return parts;
    const note = `${label}: the last line has no line ending; make sure that the file is complete.`;
    return parts.map((part, index) => (index === 0 ? { ...part, notes: [...(part.notes ?? []), note] } : part));
  },
};

/**
 * Adds everything that a registry file sets. `open` is true if the last line has no end, which the registry editor always writes, so that something
 * may be missing.
 * @throws RegistryFileProblem
 */
function readInto(contents: RegistryContents, bytes: Uint8Array): { open: boolean } {
  const text = registryText(bytes);
  for (const { line, names, value } of registryEntries(text)) {
    const problem = contents.add(names, value);
    if (problem !== undefined) throw new RegistryFileProblem(problem, line);
  }
  return { open: !/[\r\n]$/.test(text) };
}

/**
 * Returns the content at `root` and below in a registry file; the rest is ignored.
 * @throws RegistryFileProblem for anything that is not understood, so that no part of a policy is silently lost.
 */
export function parseRegistryFile(root: string, bytes: Uint8Array): RegistryKey {
  const contents = new RegistryContents((names) => namesBelow(root, names.join('\\')) !== undefined);
  readInto(contents, bytes);
  const [hive = '', ...names] = root.split('\\');
  const found = contents.find([hiveName(hive) ?? hive, ...names]);
  return { name: root, values: found?.values ?? [], keys: found?.keys ?? [] };
}

const HIVES: Readonly<Record<Hive, string>> = { hklm: 'HKEY_LOCAL_MACHINE', hkcu: 'HKEY_CURRENT_USER' };

/** Matches characters that readers of text take for an end, or for a mistake. */
const NONCHARACTER = /\p{Noncharacter_Code_Point}/u;

/**
 * Formats a deployment profile as the text of a registry file: one line per key and value, sorted, without wrapping and without empty lines; line
 * ends are LF, and nothing else in the text is a control character.
 * @throws RdError `ERR_PROFILE_INVALID` with everything that the registry cannot hold.
 */
export function regText(tree: DeploymentTree, hive: Hive, part: Part): string {
  const policies = `${HIVES[hive]}\\SOFTWARE\\Policies`;
  const product = `${policies}\\${COMPATIBLE.productName}`;
  const key = `${product}\\${part}`;
  const lines = collectingRefusals('the registry', (refuse) => memberLines(tree, { key, path: '', refuse }));
  const above = lines.length === 0 ? [] : [`[${policies}]`, `[${product}]`, `[${key}]`];
  return `${['Windows Registry Editor Version 5.00', ...above, ...lines].join('\n')}\n`;
}

interface Place {
  /** Registry key. Its names are those of the schema; a name that a user chooses is an entry of a map, which is a value. */
  key: string;
  /** Path of the setting, for messages. */
  path: string;
  refuse: Refuse;
}
type PlainValue = Exclude<DeploymentValue, DeploymentTree>;

/** Returns the lines of a section, values first: lines after that of a sub-key belong to the sub-key. */
function memberLines(tree: DeploymentTree, place: Place): string[] {
  refuseDuplicateNames(tree, place);
  const sorted = sortByName(tree);
  return [
    ...sorted.flatMap(([name, value]) => (isTree(value) ? [] : [valueLine(name, value, place)])),
    ...sorted.flatMap(([name, value]) => {
      if (!isTree(value)) return [];
      const key = `${place.key}\\${name}`;
      return [`[${key}]`, ...memberLines(value, { ...place, key, path: entryPath(place.path, name) })];
    }),
  ];
}

function refuseDuplicateNames(tree: DeploymentTree, { path, refuse }: Place): void {
  const names = new ValueNames();
  for (const name of tree.keys()) {
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
  return `"${escapeText(name)}"=${dataOf(value, at, refuse)}`;
}

function dataOf(value: PlainValue, path: string, refuse: Refuse): string {
  switch (typeof value) {
    case 'boolean':
      return `dword:${value ? '1' : '0'}`;
    case 'number':
      refuseFor(numberProblem(value), path, refuse);
      return `dword:${value.toString(16)}`;
    case 'string':
      refuseFor(textProblem(value), path, refuse);
      return UNWRITABLE.test(value) || NONCHARACTER.test(value)
        ? `hex(1):${bytes(`${value}\0`)}`
        : `"${escapeText(value)}"`;
    default:
      for (const [index, entry] of value.entries()) refuseFor(entryProblem(entry), `${path}[${index}]`, refuse);
      return `hex(7):${multiString(value)}`;
  }
}

function refuseFor(problem: string | undefined, path: string, refuse: Refuse): void {
  if (problem !== undefined) refuse(path, problem);
}

/** Joins texts: each entry ends with a NUL, and the list with another one; an empty list is that one alone. */
function multiString(entries: readonly string[]): string {
  return bytes(entries.length === 0 ? '\0' : `${entries.join('\0')}\0\0`);
}

/** Formats UTF-16LE as pairs of hexadecimal digits. */
function bytes(text: string): string {
  return Buffer.from(text, 'utf16le')
    .toString('hex')
    .replace(/..(?!$)/g, '$&,');
}

function escapeText(text: string): string {
  return text.replace(/[\\"]/g, '\\$&');
}

/** Writes a file for the Windows registry editor. */
export const regExporter: Exporter = {
  name: 'reg',
  platform: 'win32',
  fileName: (part, hive) => (hive === 'hkcu' ? `${part}.hkcu.reg` : `${part}.reg`),
  text: (tree, { hive, part }) => regText(tree, hive, part),
};
