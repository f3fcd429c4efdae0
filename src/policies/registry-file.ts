import { wideText } from './registry-data.ts';
import { namesBelow, type RegistryKey, subKey } from './registry-key.ts';
import { type Statement, statements } from './registry-statements.ts';
import { ansiText, registryText } from './registry-text.ts';
import { type Dropped, RegistryTree, TooManyKeys } from './registry-tree.ts';

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
  /** At most `MOST_PROBLEMS`; the file is not read beyond them. */
  problems: LineProblem[];
  /** The last line has no end, which the registry editor writes: something may be missing. */
  open: boolean;
  /** What deletions and later values left of it, and the deletions themselves; `at` is a line. */
  dropped: Dropped[];
}

/** Nobody reads on beyond this many lines that are not understood. */
export const MOST_PROBLEMS = 100;

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
        if (key === 'none') complain(line, 'the value stands before any key');
        else if (key === 'deleted') complain(line, 'the value stands below a key that is deleted');
        else if (key !== 'unknown' && statement.kind === 'value') tree.set(key, { ...statement.value, at: line });
        else if (key !== 'unknown' && statement.kind === 'deleted-value') tree.deleteValue(key, statement.name, line);
    }
  };
  for (const statement of statements(text, body, version === '4' ? ansiText : wideText)) {
    if (problems.length >= MOST_PROBLEMS) break;
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
