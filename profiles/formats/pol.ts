import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { Importer } from './format.ts';
import { dataOf, isSameName, typeName, wideText } from './registry.ts';
import { registryParts } from './registry-parts.ts';
import { pathProblem, RegistryTree, TooManyKeys, valueNameProblem } from './registry-tree.ts';

/**
 * A `Registry.pol` file, in which Group Policy keeps what an administrator set by templates. It does not name its hive: that
 * of a directory `Machine` is for computers, that of `User` for users. Control codes come from "Registry Policy File Format"
 * of the Windows documentation, `**soft.` from that of system policies: all but that one delete, or do what no profile can.
 */
export const registryPolImporter: Importer = {
  name: 'registry.pol',
  platform: 'win32',
  recognizes: isPolFile,
  async read(bytes, label) {
    const tree = new RegistryTree((at) => `the entry at byte ${at}`);
    try {
      for (const instruction of polInstructions(bytes)) performOrLocate(tree, hiveOf(label), instruction);
    } catch (cause) {
      if (!(cause instanceof PolProblem)) throw cause;
      throw new RdError('ERR_PROFILE_INVALID', `${label}: byte ${cause.at}: ${cause.message}`, {
        cause,
        advice: 'The file is damaged or truncated; copy it from the policy again.',
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

function performOrLocate(tree: RegistryTree, hive: string, instruction: PolInstruction): void {
  try {
    perform(tree, hive, instruction);
  } catch (cause) {
    if (!(cause instanceof TooManyKeys)) throw cause;
    throw new PolProblem(instruction.at, cause.message);
  }
}

function perform(tree: RegistryTree, hive: string, instruction: PolInstruction): void {
  const { at, key, name, type, data } = instruction;
  // Empty names are ignored here, so that no entry of a profile is mistaken for one of another product.
  if (!PROFILE_KEYS.some((ours) => isBelow(namesIn(key), ours))) {
    performForOtherProgram(tree, hive, instruction);
    return;
  }
  const below = key.replace(/\\$/, '').split('\\');
  const problem = pathProblem(below) ?? valueNameProblem(name);
  if (problem !== undefined) throw new PolProblem(at, problem);
  const names = [hive, ...below];
  if (name.startsWith('**')) control(tree, names, instruction);
  else if (makesKeyAlone(instruction)) tree.key(names);
  else tree.set(names, { ...readValue(name, { at, type, data }), at });
}

const PROFILE_KEYS = [COMPATIBLE.policyKey, COMPATIBLE.olderPolicyKey].map(namesIn);

/** Limits on what is kept of another product's entry: names in its path, and characters in a name. */
const MAX_KEPT = 255;

/**
 * An entry of another product is counted, whatever is in it: how that product reads it is not known here, and one that makes
 * no sense must not hide the profiles. What it deletes is of no concern, unless that is the key of a profile.
 */
function performForOtherProgram(tree: RegistryTree, hive: string, instruction: PolInstruction): void {
  const { at, key, name, type, data } = instruction;
  const names = namesIn(key);
  if (codeOf(name, '**deletekeys') !== undefined) {
    for (const deleted of deletedKeys(names, instruction)) {
      const hit = PROFILE_KEYS.some((ours) => isBelow(deleted, ours) || isBelow(ours, deleted));
      if (hit) recordDeletion(tree, () => tree.deleteKey([hive, ...deleted], at));
    }
    return;
  }
  if (SETS_NOTHING.test(name)) return;
  const kept = [hive, ...names.slice(0, MAX_KEPT).map((each) => each.slice(0, MAX_KEPT))];
  if (makesKeyAlone({ name, type, data })) tree.key(kept);
  else tree.set(kept, { name: name.slice(0, MAX_KEPT), type: typeName(type), data: undefined, at });
}

const SETS_NOTHING = /^\*\*(?:comment|del\.|delvals(?:\.|$)|deletevalues)/i;

/** Without a value the entry makes the key alone. */
function makesKeyAlone({ name, type, data }: Pick<PolInstruction, 'name' | 'type' | 'data'>): boolean {
  return name === '' && type === 0 && data.length === 0;
}

function namesIn(path: string): string[] {
  return path.split('\\').filter((name) => name !== '');
}

function isBelow(names: readonly string[], above: readonly string[]): boolean {
  return above.every((name, index) => isSameName(name, names[index] ?? ''));
}

function readValue(name: string, { at, type, data }: Pick<PolInstruction, 'at' | 'type' | 'data'>) {
  const kind = typeName(type);
  const read = dataOf(kind, data);
  if (read === undefined && data.length % 2 === 1 && (kind === 'REG_SZ' || kind === 'REG_MULTI_SZ')) {
    throw new PolProblem(at, 'a string ends in the middle of a character');
  }
  return { name, type: kind, data: read };
}

function control(tree: RegistryTree, names: readonly string[], instruction: PolInstruction): void {
  const { at, name, type, data } = instruction;
  const after = (code: string) => codeOf(name, code);
  const deleted = after('**del.');
  const soft = after('**soft.');
  if (deleted !== undefined) recordDeletion(tree, () => tree.deleteValue(names, deleted, at));
  else if (name.toLowerCase() === '**delvals' || after('**delvals.') !== undefined) {
    recordDeletion(tree, () => tree.deleteValues(names, at));
  } else if (after('**deletevalues') !== undefined) {
    for (const each of listOf(after('**deletevalues'), data))
      recordDeletion(tree, () => tree.deleteValue(names, each, at));
  } else if (after('**deletekeys') !== undefined) {
    for (const each of deletedKeys(names, instruction)) recordDeletion(tree, () => tree.deleteKey(each, at));
  } else if (soft !== undefined && tree.has(names, soft)) {
    tree.leaveOut(names, { at, value: soft, reason: 'it is only set if there is no value, and there is one' });
  } else if (soft !== undefined) {
    tree.set(names, { ...readValue(soft, { at, type, data }), at });
    tree.leaveOut(names, { at, value: soft, reason: 'the condition that there is no value is lost' });
  } else if (after('**securekey') !== undefined) tree.leaveOut(names, { at, reason: 'it sets permissions of the key' });
  else if (after('**comment') === undefined)
    tree.leaveOut(names, { at, value: name, reason: 'it is an unknown control code' });
}

/**
 * A deletion of what the file has not set loses nothing. Group Policy writes them of its own accord: `**delvals.` in front of the
 * values of a list that is not additive, and, for a policy that is disabled, that alone or `**del.` with the name of its value.
 */
function recordDeletion(tree: RegistryTree, deletion: () => void): void {
  const before = tree.dropped.length;
  deletion();
  // The deletion itself is the last one, behind what it took away.
  if (tree.dropped.length === before + 1) tree.dropped.pop();
}

/** What follows the code; `undefined` for another one. Case does not count. */
function codeOf(name: string, code: string): string | undefined {
  return name.toLowerCase().startsWith(code) ? name.slice(code.length) : undefined;
}

/** Paths of the keys that `**DeleteKeys` in a key is about, which is never that key itself. */
function deletedKeys(names: readonly string[], { name, data }: PolInstruction): string[][] {
  const paths = listOf(codeOf(name, '**deletekeys'), data).map(namesIn);
  return paths.filter((path) => path.length > 0).map((path) => [...names, ...path]);
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

/** One entry of a `Registry.pol` file, as it stands there. */
interface PolInstruction {
  /** Offset of its opening bracket in the file. */
  at: number;
  /** Path of the key below the hive. */
  key: string;
  /** Name of a value, or a control code: `**del.NAME`. */
  name: string;
  /** Number of the type of the value. */
  type: number;
  data: Buffer;
}

/** A place in the file where something else was expected. */
class PolProblem extends Error {
  readonly at: number;

  constructor(at: number, reason: string) {
    super(reason);
    this.at = at;
  }
}

const SIGNATURE = 'PReg';
const VERSION = 1;

function isPolFile(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, SIGNATURE.length)).toString('latin1') === SIGNATURE;
}

/**
 * The instructions of a `Registry.pol` file: a signature, a version, and `[key;value;type;size;data]` for each, with characters and
 * texts in UTF-16LE, texts ended by a NUL, and numbers of 32 bits (Windows Protocols, [MS-GPREG] 2.2.1).
 * @throws PolProblem where the file is not of that form.
 */
function* polInstructions(bytes: Uint8Array): Generator<PolInstruction> {
  const reader = new PolReader(bytes);
  reader.header();
  while (!reader.atEnd()) yield reader.instruction();
}

class PolReader {
  private readonly bytes: Buffer;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  header(): void {
    if (!isPolFile(this.bytes)) throw new PolProblem(0, `the file does not begin with ${SIGNATURE}`);
    this.at = SIGNATURE.length;
    const version = this.number('the version');
    if (version !== VERSION) throw new PolProblem(SIGNATURE.length, `the version is ${version} and not ${VERSION}`);
  }

  atEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  instruction(): PolInstruction {
    const { at } = this;
    this.expect('[');
    const key = this.text('the key');
    this.expect(';');
    const name = this.text('the name');
    this.expect(';');
    const type = this.number('the type');
    this.expect(';');
    const size = this.number('the size');
    this.expect(';');
    if (size > this.bytes.length - this.at) throw new PolProblem(this.at, `${size} bytes are declared, and missing`);
    const data = this.bytes.subarray(this.at, this.at + size);
    this.at += size;
    this.expect(']');
    return { at, key, name, type, data };
  }

  private expect(char: string): void {
    if (this.bytes.toString('utf16le', this.at, this.at + 2) !== char) {
      throw new PolProblem(this.at, `"${char}" is missing`);
    }
    this.at += 2;
  }

  private number(what: string): number {
    if (this.at + 4 > this.bytes.length) throw new PolProblem(this.at, `the file ends before ${what}`);
    this.at += 4;
    return this.bytes.readUInt32LE(this.at - 4);
  }

  /** Up to a NUL; brackets and semicolons may be in it. */
  private text(what: string): string {
    const from = this.at;
    for (let end = from; end + 2 <= this.bytes.length; end += 2) {
      if (this.bytes.readUInt16LE(end) !== 0) continue;
      this.at = end + 2;
      return this.bytes.toString('utf16le', from, end);
    }
    throw new PolProblem(from, `${what} does not end`);
  }
}
