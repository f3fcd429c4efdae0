import { dataOf, hiveName, type RegistryValue, typeName } from './registry.ts';

/** A key of a registry file, or a value in it. `line` is its first line, counted from 1. */
interface RegistryEntry {
  line: number;
  /** The hive by its long name, and the names below it. */
  names: readonly string[];
  value?: RegistryValue;
}

/** The reason why a registry file cannot be read, as a clause. */
export class RegistryFileProblem extends Error {
  /** Line of the problem; absent if it concerns the file as a whole. */
  readonly line: number | undefined;

  constructor(reason: string, line?: number) {
    super(reason);
    this.line = line;
  }
}

const HEADER = 'Windows Registry Editor Version 5.00';

/** Whether bytes look like a file of the registry editor, in any version and encoding. */
export function isRegistryFile(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.subarray(0, 128)).toString('latin1');
  return /^[ \t]*(?:Windows Registry Editor|REGEDIT)/.test(start.replaceAll(/[\0\xfe\xff\xef\xbb\xbf]/g, ''));
}

/**
 * Decodes a registry file: UTF-16 with a byte order mark, as the registry editor writes it, or UTF-8.
 * @throws RegistryFileProblem
 */
export function registryText(bytes: Uint8Array): string {
  const text = decodeText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  if (text === undefined) throw new RegistryFileProblem('it is neither UTF-8 nor UTF-16LE with a byte order mark');
  if (/^[ \t]*(.*)/.exec(text)?.[1] !== HEADER) throw new RegistryFileProblem(`the first line is not "${HEADER}"`);
  return text;
}

function decodeText(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) {
    // A decoder of texts would replace an unpaired surrogate, which a value of the registry can hold.
    return bytes.length % 2 === 0 ? bytes.toString('utf16le', 2) : undefined;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Yields the keys and values of a registry file, in order: a key in brackets up to the last one of its line, a value with its name in quotation marks
 * or `@`, and `;` before a comment. A string may continue on the next lines, bytes after a `\`.
 * @throws RegistryFileProblem at the first line that the registry editor would skip or read differently, and at deletions: a
 *   profile can only set values.
 */
export function* registryEntries(text: string): Generator<RegistryEntry> {
  const reader = new Reader(text);
  let names: string[] | undefined;
  for (let line = reader.nextLine(); line !== undefined; line = reader.nextLine()) {
    try {
      if (text[reader.at] === '[') {
        names = reader.key();
        yield { line, names };
      } else {
        const value = reader.value();
        if (!names) throw new Refusal('the value comes before any key');
        yield { line, names, value };
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new RegistryFileProblem(error.message, line);
    }
  }
}

class Refusal extends Error {}

const DELETION = 'is a deletion, and profiles can only set values';

/** Matches blanks and comments. Patterns apply at the current position and never across more than one line, so the work grows with the text. */
const BLANK = /[ \t\r\n]+|;[^\r\n]*/y;
const KEY = /\[([^\r\n]*)\][ \t]*(?:;[^\r\n]*)?(?=[\r\n]|$)/y;
const EQUALS = /[ \t]*=[ \t]*/y;
const CHARACTERS = /[^"\\\0\r\n]+/y;
const LINE_END = /\r\n|\r|\n/y;
const DWORD = /dword:[ \t]*([0-9a-fA-F]{1,8})(?![0-9a-fA-F])/y;
const HEX = /hex(?:\(([0-9a-fA-F]{1,8})\))?:/y;
const BYTE = /[ \t]*(?:\\[ \t]*(?:\r\n|\r|\n)[ \t]*)?([0-9a-fA-F]{1,2})(,?)/y;
const END = /[ \t]*(?:;[^\r\n]*)?(?:\r\n|\r|\n|$)/y;

class Reader {
  at = 0;
  private readonly text: string;
  /** The last counted line; `counted` is its offset. */
  private line = 1;
  private counted = 0;

  constructor(text: string) {
    this.text = text;
    this.match(/.*/y);
  }

  /** Advances to the next key or value and returns its line; undefined at the end of the text. */
  nextLine(): number | undefined {
    while (this.match(BLANK));
    if (this.at >= this.text.length) return undefined;
    this.line += this.text.slice(this.counted, this.at).split(/\r\n|\r|\n/).length - 1;
    this.counted = this.at;
    return this.line;
  }

  key(): string[] {
    const path = this.match(KEY)?.[1];
    if (path === undefined) throw new Refusal('the key has no closing bracket, or there is text after it');
    if (path.startsWith('-')) throw new Refusal(`it ${DELETION}`);
    const [first = '', ...below] = path.replace(/\\$/, '').split('\\');
    const hive = hiveName(first);
    if (hive === undefined) throw new Refusal('the key is not in a hive of the registry');
    return [hive, ...below];
  }

  value(): RegistryValue {
    const name = this.name();
    if (!this.match(EQUALS)) throw new Refusal('no "=" follows the name');
    const value = { name, ...this.data() };
    if (!this.match(END)) throw new Refusal('there is text after the value');
    return value;
  }

  private name(): string {
    if (this.match(/@/y)) return '';
    if (!this.match(/"/y)) throw new Refusal('it is not a key, a value or a comment');
    return this.quoted('name');
  }

  private data(): Omit<RegistryValue, 'name'> {
    if (this.match(/"/y)) return { type: 'REG_SZ', data: this.quoted('string') };
    const number = this.match(DWORD)?.[1];
    if (number !== undefined) return { type: 'REG_DWORD', data: Number.parseInt(number, 16) };
    const hex = this.match(HEX);
    if (hex) return this.bytes(typeName(Number.parseInt(hex[1] ?? '3', 16)));
    if (this.match(/-/y)) throw new Refusal(`it ${DELETION}`);
    throw new Refusal('expected a string, "dword:" with 1 to 8 hexadecimal digits or "hex:" after "="');
  }

  /** Reads the rest of a quoted text. A name ends on its line; a string may continue. */
  private quoted(kind: 'name' | 'string'): string {
    const pieces: string[] = [];
    for (;;) {
      if (this.match(/"/y)) return pieces.join('');
      const piece = this.match(CHARACTERS)?.[0] ?? this.match(/\\([\\"])/y)?.[1] ?? this.lineEndIn(kind);
      if (piece === undefined) throw new Refusal(this.unfinished(kind));
      pieces.push(piece);
    }
  }

  private lineEndIn(kind: 'name' | 'string'): string | undefined {
    return kind === 'string' ? this.match(LINE_END)?.[0] : undefined;
  }

  private unfinished(kind: 'name' | 'string'): string {
    const next = this.text[this.at];
    if (next === '\\') return `a single "\\" in the ${kind} must be written as "\\\\"`;
    return next === '\0' ? `the ${kind} holds a NUL character` : `the ${kind} has no closing quotation mark`;
  }

  /** Reads bytes; a `\` between them continues on the next line. */
  private bytes(type: string): Omit<RegistryValue, 'name'> {
    const bytes: number[] = [];
    for (let more = true; more; ) {
      const byte = this.match(BYTE);
      if (!byte && bytes.length > 0) throw new Refusal('no byte of 1 or 2 hexadecimal digits follows the ","');
      if (byte) bytes.push(Number.parseInt(byte[1] ?? '', 16));
      more = byte?.[2] === ',';
    }
    const data = dataOf(type, Buffer.from(bytes));
    // An incomplete string is not read as a shorter one.
    if (data === undefined && (type === 'REG_SZ' || type === 'REG_MULTI_SZ')) {
      throw new Refusal('the bytes end in the middle of a character');
    }
    return { type, data };
  }

  /** Advances past the pattern if it matches at the current position. */
  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }
}
