import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { collectingRefusals, type Exporter, type Hive, type Importer, type Part, type Refuse } from './format.ts';
import { ansiText, isRegistryFile, registryText, type Statement, statements } from './reg-statements.ts';
import {
  entryProblem,
  nameProblem,
  namesBelow,
  numberProblem,
  type RegistryKey,
  subKey,
  textProblem,
  UNWRITABLE,
  ValueNames,
  wideText,
} from './registry.ts';
import { type Dropped, RegistryTree, TooManyKeys } from './registry-tree.ts';
import { type DeploymentTree, type DeploymentValue, entryPath, isTree, sortedByName } from './tree.ts';

/**
 * A file of the registry editor of Windows, in every form that it writes or takes. Deletions are lost, because a profile only
 * sets values; so is a value that a later line sets again.
 */
export const regImporter: Importer = {
  name: 'reg',
  platform: 'win32',
  recognizes: isRegistryFile,
  async read(bytes, label) {
    const file = readRegistryFile(bytes);
    if (typeof file === 'string') {
      throw new RdError('ERR_PROFILE_INVALID', `${label} is not a registry file that can be read: ${file}`, {
        advice: 'Export the key again with `reg export`, or save the file as UTF-16.',
      });
    }
    if (file.problems.length > 0) throw notUnderstood(label, file.problems);
    const left = file.dropped.map(({ at, reason, ...place }) => ({ ...place, reason: `${reason} (line ${at})` }));
    // It knows the shapes of all versions, which are most of the time that an export would take.
    const { registryParts } = await import('./registry-parts.ts');
    const parts = registryParts(label, file.hives, left);
    if (!file.open) return parts;
    const note = `${label}: the last line has no line ending; make sure that the file is complete.`;
    return parts.map((part, index) => (index === 0 ? { ...part, notes: [...(part.notes ?? []), note] } : part));
  },
};

function notUnderstood(label: string, problems: readonly LineProblem[]): RdError {
  const count = problems.length === 1 ? '1 line' : `${problems.length} lines`;
  const details = problems.map(({ line, reason }) => `${label}:${line}: ${reason}`);
  return new RdError(
    'ERR_PROFILE_INVALID',
    `${label} has ${count} that ${problems.length === 1 ? 'is' : 'are'} not understood`,
    {
      details: problems.length < MAX_PROBLEMS ? details : [...details, 'Later lines were not checked.'],
      advice:
        'Correct the file, or export the key again with `reg export`; the registry editor would skip or change such lines silently.',
    },
  );
}

const HIVES: Readonly<Record<Hive, string>> = { hklm: 'HKEY_LOCAL_MACHINE', hkcu: 'HKEY_CURRENT_USER' };

/** Readers of text take these for an end, or for a mistake. */
const NONCHARACTER = /\p{Noncharacter_Code_Point}/u;

/**
 * A deployment profile as the text of a registry file: one line per key and value, sorted, without wrapping
 * and without empty lines; line ends are LF, and nothing else in the text is a control character.
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
  /** Registry key. Its names are those of the schema: what a user may name is an entry of a map, and a value. */
  key: string;
  /** Setting, for messages. */
  path: string;
  refuse: Refuse;
}
type PlainValue = Exclude<DeploymentValue, DeploymentTree>;

/** Values first: what follows the line of a sub-key belongs to the sub-key. */
function memberLines(tree: DeploymentTree, place: Place): string[] {
  refuseDuplicateNames(tree, place);
  const sorted = sortedByName(tree);
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
  return `"${escaped(name)}"=${dataOf(value, at, refuse)}`;
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
        : `"${escaped(value)}"`;
    default:
      for (const [index, entry] of value.entries()) refuseFor(entryProblem(entry), `${path}[${index}]`, refuse);
      return `hex(7):${multiString(value)}`;
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

/** A line that is not understood, counted from 1, and why, as a clause. */
export interface LineProblem {
  line: number;
  reason: string;
}

/** What a registry file holds. */
export interface RegistryFile {
  /** `REGEDIT4` or the later `5.00`. */
  version: '4' | '5.00';
  /** A key for each hive by its long name, `HKEY_LOCAL_MACHINE`. */
  hives: RegistryKey[];
  /** At most `MAX_PROBLEMS`; the file is not read beyond them. */
  problems: LineProblem[];
  /** The last line has no end, which the registry editor writes: something may be missing. */
  open: boolean;
  /** What deletions and later values left of it, and the deletions themselves; `at` is a line. */
  dropped: Dropped[];
}

/** Reading stops after this many lines that are not understood. */
const MAX_PROBLEMS = 100;

/**
 * Reads a file of the registry editor in any form that it writes or takes; the work grows with the length of the file.
 * Returns a clause for bytes that are no such file.
 */
export function readRegistryFile(bytes: Uint8Array): RegistryFile | string {
  const header = registryText(bytes);
  if (typeof header === 'string') return header;
  const { text, version, body } = header;
  const tree = new RegistryTree((line) => `line ${line}`);
  const problems: LineProblem[] = [];
  const complain = (line: number, reason: string) => void problems.push({ line, reason });
  let key: readonly string[] | 'none' | 'deleted' | 'unknown' = 'none';
  const perform = (statement: Statement) => {
    const { line } = statement;
    switch (statement.kind) {
      case 'key':
        key = statement.names;
        tree.key(key);
        break;
      case 'deleted-key':
        key = 'deleted';
        tree.deleteKey(statement.names, line);
        break;
      case 'problem':
        complain(line, statement.reason);
        // What follows a key that is not understood belongs to no other one.
        if (statement.ofKey) key = 'unknown';
        break;
      case 'value':
      case 'deleted-value':
        if (key === 'none') complain(line, 'the value comes before any key');
        else if (key === 'deleted') complain(line, 'the value belongs to a key that is deleted');
        else if (key !== 'unknown' && statement.kind === 'value') tree.set(key, { ...statement.value, at: line });
        else if (key !== 'unknown' && statement.kind === 'deleted-value') tree.deleteValue(key, statement.name, line);
    }
  };
  for (const statement of statements(text, body, version === '4' ? ansiText : wideText)) {
    if (problems.length >= MAX_PROBLEMS) break;
    try {
      perform(statement);
    } catch (error) {
      if (!(error instanceof TooManyKeys)) throw error;
      complain(statement.line, error.message);
      break;
    }
  }
  return { version, hives: tree.hives(), problems, open: !/[\r\n]$/.test(text), dropped: tree.dropped };
}

/**
 * What is at `root` and below in a file that `reg export` wrote, which says everything once and in full; `undefined` when
 * anything in it is otherwise, so that nothing of a policy gets lost without a word. What lies elsewhere is passed over.
 */
export function parseRegistryFile(root: string, bytes: Uint8Array): RegistryKey | undefined {
  const file = readRegistryFile(bytes);
  if (typeof file === 'string' || file.version !== '5.00' || file.problems.length > 0 || file.dropped.length > 0) {
    return undefined;
  }
  const found = file.hives.map((hive) => keyBelow(hive, namesBelow(hive.name, root))).find((key) => key !== undefined);
  return { name: root, values: found?.values ?? [], keys: found?.keys ?? [] };
}

function keyBelow(hive: RegistryKey, names: readonly string[] | undefined): RegistryKey | undefined {
  let key: RegistryKey | undefined = names && hive;
  for (const name of names ?? []) key = key && subKey(key, name);
  return key;
}
