import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { Importer } from './format.ts';
import { dataOf, isSameName, type RegistryValue, typeName } from './registry.ts';
import { isOfApplication, RegistryContents } from './registry-contents.ts';
import { registryParts } from './registry-parts.ts';

/**
 * Reads a `Registry.pol` file, in which Group Policy stores the settings that an administrator makes with templates. The file does not name its hive;
 * the directory does: `Machine` for computers, `User` for users.
 */
export const registryPolImporter: Importer = {
  name: 'registry.pol',
  platform: 'win32',
  recognizes: isPolFile,
  async read(bytes, label) {
    const contents = new RegistryContents();
    try {
      for (const entry of polEntries(bytes)) add(contents, hiveOf(label), entry);
    } catch (cause) {
      if (!(cause instanceof PolProblem)) throw cause;
      throw new RdError('ERR_PROFILE_INVALID', `${label}: byte ${cause.at}: ${cause.message}`, {
        cause,
        advice: 'Copy the file from the policy again, or remove the entry from the policy.',
      });
    }
    return registryParts(label, contents);
  },
};

/** Returns the hive that follows from the directory of the file; empty if unknown. */
function hiveOf(label: string): string {
  const directory = /(?:^|[\\/])(machine|user)[\\/][^\\/]*$/i.exec(label)?.[1]?.toLowerCase();
  if (directory === undefined) return '';
  return directory === 'user' ? 'HKEY_CURRENT_USER' : 'HKEY_LOCAL_MACHINE';
}

/** Adds an entry. Those of other products are only counted, so nothing in them is an error. */
function add(contents: RegistryContents, hive: string, entry: PolEntry): void {
  const names = [hive, ...entry.key.replace(/\\$/, '').split('\\')];
  const problem = entry.name.startsWith('**') ? controlProblem(contents, names, entry) : undefined;
  if (problem !== undefined) throw new PolProblem(entry.at, problem);
  if (SETS_NOTHING.test(entry.name)) return;
  const added = contents.add(names, makesKeyAlone(entry) ? undefined : registryValue(entry, isOfApplication(names)));
  if (added !== undefined) throw new PolProblem(entry.at, added);
}

/** Control codes of "Registry Policy File Format" in the Windows documentation that set no value. */
const SETS_NOTHING = /^\*\*(?:comment|del\.|delvals|deletevalues|deletekeys|securekey)/i;

/**
 * Returns the reason why a control code cannot be followed, as a clause. Group Policy writes deletions by itself: `**delvals.` in front of the values
 * of a list, and, for a disabled policy, only that or `**del.` with the name of its value. They change nothing here, because the file has not set
 * those values; any other deletion in a key of the application is refused.
 */
function controlProblem(contents: RegistryContents, names: readonly string[], { name }: PolEntry): string | undefined {
  if (/^\*\*deletekeys/i.test(name)) {
    return isAboveProfile(names) ? 'it deletes keys, and profiles can only set values' : undefined;
  }
  if (!isOfApplication(names) || /^\*\*comment/i.test(name)) return undefined;
  const set = contents.find(names)?.values ?? [];
  const deleted = /^\*\*(?:del\.(?<name>.*)|delvals(?:\..*)?)$/is.exec(name);
  if (!deleted) return `it has the control code "${/^\*\*\w*/.exec(name)?.[0]}", and profiles can only set values`;
  const one = deleted.groups?.name;
  const hit = one === undefined ? set.length > 0 : set.some((value) => isSameName(value.name, one));
  return hit ? 'it deletes what an earlier entry sets, and profiles can only set values' : undefined;
}

/** Whether deleting keys below this one could delete a part of a profile. */
function isAboveProfile(names: readonly string[]): boolean {
  const path = names.slice(1).filter((name) => name !== '');
  return (
    isOfApplication(path) ||
    [COMPATIBLE.policyKey, COMPATIBLE.olderPolicyKey].some((key) => {
      const profile = key.split('\\');
      return path.every((name, index) => isSameName(name, profile[index] ?? ''));
    })
  );
}

/** Whether an entry creates only the key, because it has no value. */
function makesKeyAlone({ name, type, data }: PolEntry): boolean {
  return name === '' && type === 0 && data.length === 0;
}

function registryValue({ at, name, type, data: bytes }: PolEntry, isOurs: boolean): RegistryValue {
  const kind = typeName(type);
  const data = dataOf(kind, bytes);
  if (isOurs && data === undefined && (kind === 'REG_SZ' || kind === 'REG_MULTI_SZ')) {
    throw new PolProblem(at, 'a string ends in the middle of a character');
  }
  return { name, type: kind, data };
}

/** An entry of a `Registry.pol` file. */
interface PolEntry {
  /** Offset of the opening bracket in the file. */
  at: number;
  /** Path of the key below the hive. */
  key: string;
  /** Name of the value, or a control code: `**del.NAME`. */
  name: string;
  /** Number of the value's type. */
  type: number;
  data: Buffer;
}

/** The reason why the file cannot be read, and the offset of the byte. */
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
 * Yields the entries of a `Registry.pol` file: a signature, a version, and `[key;value;type;size;data]` for each, with characters and strings in
 * UTF-16LE, strings terminated by NUL, and 32-bit numbers (Windows Protocols, [MS-GPREG] 2.2.1).
 * @throws PolProblem if the file is malformed.
 */
function* polEntries(bytes: Uint8Array): Generator<PolEntry> {
  const reader = new PolReader(bytes);
  reader.header();
  while (!reader.atEnd()) yield reader.entry();
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

  entry(): PolEntry {
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

  /** Reads a text, which ends at a NUL and may contain brackets and semicolons. */
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
