import { RdError } from '../../src/errors.ts';
import { dataOf, typeName, wideText } from '../../src/policies/registry-data.ts';
import { nameProblem, pathProblem, RegistryTree, TooManyKeys } from '../../src/policies/registry-tree.ts';
import type { Importer } from './importer.ts';
import { isPolFile, type PolInstruction, PolProblem, polInstructions } from './pol-instructions.ts';
import { registryParts } from './registry-parts.ts';

/**
 * A `Registry.pol` file, in which Group Policy keeps what an administrator set by templates. It does not name its hive: that
 * of a directory `Machine` is for computers, that of `User` for users. Control codes come from "Registry Policy File Format"
 * of the Windows documentation, `**soft.` from that of system policies: all but that one delete, or do what no profile can.
 */
export const registryPolImporter: Importer = {
  name: 'registry.pol',
  platform: 'win32',
  recognises: isPolFile,
  async read(bytes, label) {
    const tree = new RegistryTree((at) => `the entry at byte ${at}`);
    try {
      for (const instruction of polInstructions(bytes)) performAt(tree, hiveOf(label), instruction);
    } catch (cause) {
      if (!(cause instanceof PolProblem)) throw cause;
      throw new RdError('ERR_PROFILE_INVALID', `${label}: byte ${cause.at}: ${cause.message}`, {
        cause,
        advice: 'The file is damaged or cut off; take it again from the policy.',
      });
    }
    const left = tree.dropped.map(({ at, reason, ...place }) => ({ ...place, reason: `${reason} (byte ${at})` }));
    return registryParts(label, tree.hives(), left);
  },
};

/** By the directory of the file; an empty name where that says nothing. */
function hiveOf(label: string): string {
  const directory = /(?:^|[\\/])(machine|user)[\\/][^\\/]*$/i.exec(label)?.[1]?.toLowerCase();
  if (directory === undefined) return '';
  return directory === 'user' ? 'HKEY_CURRENT_USER' : 'HKEY_LOCAL_MACHINE';
}

function performAt(tree: RegistryTree, hive: string, instruction: PolInstruction): void {
  try {
    perform(tree, hive, instruction);
  } catch (cause) {
    if (!(cause instanceof TooManyKeys)) throw cause;
    throw new PolProblem(instruction.at, cause.message);
  }
}

function perform(tree: RegistryTree, hive: string, { at, key, name, type, data }: PolInstruction): void {
  const below = key.replace(/\\$/, '').split('\\');
  const problem = pathProblem(below) ?? nameProblem(name);
  if (problem !== undefined) throw new PolProblem(at, problem);
  const names = [hive, ...below];
  if (name.startsWith('**')) {
    control(tree, names, { at, key, name, type, data });
    return;
  }
  // Without a value the entry makes the key alone.
  if (name === '' && type === 0 && data.length === 0) tree.key(names);
  else tree.set(names, { ...readValue(name, { at, type, data }), at });
}

function readValue(name: string, { at, type, data }: Pick<PolInstruction, 'at' | 'type' | 'data'>) {
  const kind = typeName(type);
  const read = dataOf(kind, data);
  if (read === undefined && data.length % 2 === 1 && (kind === 'REG_SZ' || kind === 'REG_MULTI_SZ')) {
    throw new PolProblem(at, 'a text ends inside of a character');
  }
  return { name, type: kind, data: read };
}

/** Codes are told without regard to letter case. */
function control(tree: RegistryTree, names: readonly string[], { at, name, type, data }: PolInstruction): void {
  const lower = name.toLowerCase();
  const after = (code: string) => (lower.startsWith(code) ? name.slice(code.length) : undefined);
  const deleted = after('**del.');
  const soft = after('**soft.');
  if (deleted !== undefined) tree.deleteValue(names, deleted, at);
  else if (lower === '**delvals' || after('**delvals.') !== undefined) tree.deleteValues(names, at);
  else if (after('**deletevalues') !== undefined) {
    for (const each of listOf(after('**deletevalues'), data)) tree.deleteValue(names, each, at);
  } else if (after('**deletekeys') !== undefined) {
    for (const each of listOf(after('**deletekeys'), data)) tree.deleteKey([...names, ...each.split('\\')], at);
  } else if (soft !== undefined && tree.has(names, soft)) {
    tree.leaveOut(names, { at, value: soft, reason: 'it is only set where no value is, and there is one' });
  } else if (soft !== undefined) {
    tree.set(names, { ...readValue(soft, { at, type, data }), at });
    tree.leaveOut(names, { at, value: soft, reason: 'that it is only set where no value is gets lost' });
  } else if (after('**securekey') !== undefined)
    tree.leaveOut(names, { at, reason: 'it sets who may write to the key' });
  else if (after('**comment') === undefined)
    tree.leaveOut(names, { at, value: name, reason: 'it is a control code that is not known' });
}

/** Names with semicolons between, behind the code or, as newer files have it, in the data. */
function listOf(behind: string | undefined, data: Buffer): string[] {
  const text = behind?.trim() || (wideText(data) ?? '');
  return text
    .replaceAll('\0', '')
    .split(';')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
