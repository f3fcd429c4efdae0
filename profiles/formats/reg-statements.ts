// Longer than most: one pass over one grammar, from the bytes of a file to its statements.
import { dataOf, hiveName, type RegistryValue, typeName } from './registry.ts';
import { pathProblem, valueNameProblem } from './registry-tree.ts';

/** One entry of a registry file; `line` is where it begins, counted from 1. */
export type Statement = { line: number } & (
  | { kind: 'key' | 'deleted-key'; names: string[] }
  | { kind: 'value'; value: RegistryValue }
  | { kind: 'deleted-value'; name: string }
  /** Not understood; a clause says why. `ofKey`: it is a key, so that what follows is not of the key before. */
  | { kind: 'problem'; reason: string; ofKey: boolean }
);

/** How texts in bytes are written. */
type TextOfBytes = (bytes: Buffer) => string | undefined;

class NotUnderstood extends Error {}

/**
 * The statements after the first line, as the registry editor takes them: a key in brackets up to the last one of its line, a
 * value with its name in quotation marks or `@`, a `;` before a comment at the begin of a line and after a value. Texts may go
 * over lines and keep them; bytes go on after a `\`. No character is looked at more than a few times.
 */
export function* statements(text: string, body: number, textOf: TextOfBytes): Generator<Statement> {
  const reader = new Reader(text, body, textOf);
  for (let next = reader.next(); next; next = reader.next()) yield next;
}

class Reader {
  private readonly text: string;
  private readonly textOf: TextOfBytes;
  private at: number;
  private line = 1;

  constructor(text: string, at: number, textOf: TextOfBytes) {
    this.text = text;
    this.at = at;
    this.textOf = textOf;
  }

  next(): Statement | undefined {
    while (this.at < this.text.length) {
      this.skipBlanks();
      if (!this.atEnd()) break;
      this.skipLine();
    }
    if (this.at >= this.text.length) return undefined;
    const { at, line } = this;
    try {
      return { line, ...(this.text[at] === '[' ? this.key() : this.value()) };
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      // A text that never ends may have taken what follows: the next line is looked at by itself.
      this.at = at;
      this.line = line;
      this.skipLine();
      return { line, kind: 'problem', reason: error.message, ofKey: this.text[at] === '[' };
    }
  }

  private key(): { kind: 'key' | 'deleted-key'; names: string[] } {
    const end = endOfLine(this.text, this.at);
    const whole = this.text.slice(this.at + 1, end);
    const close = whole.lastIndexOf(']');
    if (close < 0) throw new NotUnderstood('the key has no closing bracket');
    if (!/^[ \t]*(?:;|$)/.test(whole.slice(close + 1)))
      throw new NotUnderstood('there is text after the closing bracket of the key');
    const deleted = whole.startsWith('-');
    const [first = '', ...below] = whole
      .slice(deleted ? 1 : 0, close)
      .replace(/\\$/, '')
      .split('\\');
    const hive = hiveName(first);
    if (hive === undefined) throw new NotUnderstood('the key is not in a hive of the registry');
    const problem = pathProblem(below);
    if (problem !== undefined) throw new NotUnderstood(problem);
    this.at = end;
    this.skipLine();
    return { kind: deleted ? 'deleted-key' : 'key', names: [hive, ...below] };
  }

  private value(): { kind: 'value'; value: RegistryValue } | { kind: 'deleted-value'; name: string } {
    const name = this.name();
    this.skipBlanks();
    if (!this.take('=')) throw new NotUnderstood('no "=" follows the name');
    this.skipBlanks();
    if (this.take('-')) {
      this.endOfStatement('the "-"');
      return { kind: 'deleted-value', name };
    }
    return { kind: 'value', value: { name, ...this.data() } };
  }

  private name(): string {
    if (this.take('@')) return '';
    if (!this.take('"')) throw new NotUnderstood('it is not a key, a value or a comment');
    const name = this.quoted('name');
    const problem = valueNameProblem(name);
    if (problem !== undefined) throw new NotUnderstood(problem);
    return name;
  }

  private data(): Omit<RegistryValue, 'name'> {
    if (this.take('"')) return { type: 'REG_SZ', data: this.textValue() };
    const word = /^(?:(dword)|hex(?:\(([0-9A-Fa-f]{1,8})\))?):/.exec(this.text.slice(this.at, this.at + 16));
    if (!word) throw new NotUnderstood('expected a string, "dword:", "hex:" or "-" after "="');
    this.at += word[0].length;
    if (word[1] !== undefined) return { type: 'REG_DWORD', data: this.number() };
    const type = typeName(Number.parseInt(word[2] ?? '3', 16));
    const bytes = this.bytes();
    const data = dataOf(type, bytes, this.textOf);
    if (data === undefined && TEXTS.has(type)) throw new NotUnderstood('the bytes end in the middle of a character');
    return { type, data };
  }

  /** A text that takes in the lines below it, and then makes no sense, was most likely meant to end on its own. */
  private textValue(): string {
    const { line } = this;
    try {
      const data = this.quoted('string');
      this.endOfStatement('the closing quotation mark');
      return data;
    } catch (error) {
      if (!(error instanceof NotUnderstood) || this.line === line || error.message === UNCLOSED_TEXT) throw error;
      throw new NotUnderstood(`${UNCLOSED_TEXT} on its line, and does not continue on the next ones: ${error.message}`);
    }
  }

  /** What stands between quotation marks; the first one is behind. A name ends on its line, a text may go on. */
  private quoted(kind: 'name' | 'string'): string {
    const parts: string[] = [];
    let from = this.at;
    for (; this.at < this.text.length; this.at++) {
      const char = this.text[this.at];
      if (char === '"') {
        parts.push(this.text.slice(from, this.at));
        this.at += 1;
        return parts.join('');
      }
      if (char === '\0') throw new NotUnderstood(`the ${kind} holds a NUL character`);
      if (char === '\n' || char === '\r') {
        if (kind === 'name') break;
        if (char === '\n' || this.text[this.at + 1] !== '\n') this.line += 1;
      }
      if (char !== '\\') continue;
      const next = this.text[this.at + 1];
      if (next !== '\\' && next !== '"')
        throw new NotUnderstood(`a single "\\" in the ${kind} must be written as "\\\\"`);
      parts.push(this.text.slice(from, this.at));
      this.at += 1;
      from = this.at;
    }
    throw new NotUnderstood(kind === 'string' ? UNCLOSED_TEXT : 'the name has no closing quotation mark');
  }

  private number(): number {
    this.skipBlanks();
    const digits = /^[0-9a-f]*/i.exec(this.text.slice(this.at, this.at + 9))?.[0] ?? '';
    if (digits.length < 1 || digits.length > 8) throw new NotUnderstood('"dword:" takes 1 to 8 hexadecimal digits');
    this.at += digits.length;
    this.endOfStatement('the number');
    return Number.parseInt(digits, 16);
  }

  /** Pairs of digits with commas between them; `\` in the place of a pair leads to the next line that is not empty. */
  private bytes(): Buffer {
    const bytes: number[] = [];
    for (let expected = false; ; ) {
      this.skipBlanks();
      if (this.take('\\')) {
        this.endOfStatement('the "\\"');
        this.skipEmptyLines();
        if (this.text[this.at] === '\\') throw new NotUnderstood('a "\\" is where bytes should continue');
        expected = true;
        continue;
      }
      if (this.atEnd()) {
        if (expected) throw new NotUnderstood('bytes are missing at the end');
        this.skipLine();
        return Buffer.from(bytes);
      }
      bytes.push(this.byte());
      expected = this.take(',');
      if (!expected) {
        this.endOfStatement('the bytes');
        return Buffer.from(bytes);
      }
    }
  }

  private byte(): number {
    const digits = /^[0-9a-f]*/i.exec(this.text.slice(this.at, this.at + 3))?.[0] ?? '';
    if (digits.length < 1 || digits.length > 2)
      throw new NotUnderstood('bytes are 1 or 2 hexadecimal digits with commas between');
    this.at += digits.length;
    return Number.parseInt(digits, 16);
  }

  private skipEmptyLines(): void {
    while (this.at < this.text.length) {
      this.skipBlanks();
      if (!this.atEnd()) return;
      this.skipLine();
    }
  }

  private endOfStatement(after: string): void {
    this.skipBlanks();
    if (!this.atEnd()) throw new NotUnderstood(`there is text after ${after}`);
    this.skipLine();
  }

  /** At the end of a line or of the text, or before a comment. */
  private atEnd(): boolean {
    const char = this.text[this.at];
    return char === undefined || char === '\n' || char === '\r' || char === ';';
  }

  private skipBlanks(): void {
    while (this.text[this.at] === ' ' || this.text[this.at] === '\t') this.at += 1;
  }

  private skipLine(): void {
    const end = endOfLine(this.text, this.at);
    this.at = this.text[end] === '\r' && this.text[end + 1] === '\n' ? end + 2 : end + 1;
    this.line += 1;
  }

  private take(char: string): boolean {
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }
}

const UNCLOSED_TEXT = 'the string has no closing quotation mark';

/** A text that breaks off is not read as a shorter one. */
const TEXTS: ReadonlySet<string> = new Set(['REG_SZ', 'REG_MULTI_SZ']);

/** The text of a file of the registry editor. */
interface RegistryText {
  text: string;
  /** `5.00` keeps texts in bytes as UTF-16, `4` (`REGEDIT4`) in the code page of the computer. */
  version: '4' | '5.00';
  /** Index where the lines after the first begin. */
  body: number;
}

const HEADERS: Readonly<Record<string, RegistryText['version']>> = {
  'Windows Registry Editor Version 5.00': '5.00',
  REGEDIT4: '4',
};

/** How the first line begins in every version; the older ones of Windows 3 and later ones are not read. */
const FIRST_WORDS = /^[ \t]*(?:Windows Registry Editor|REGEDIT)/;

/** Whether bytes look like a file of the registry editor, of whatever version. */
export function isRegistryFile(bytes: Uint8Array): boolean {
  const length = Math.min(bytes.length - (bytes.length % 2), 128);
  const text = decoded(Buffer.from(bytes.buffer, bytes.byteOffset, length), true);
  return typeof text === 'string' && FIRST_WORDS.test(text.replace(/^\ufeff/, ''));
}

/**
 * The text, by the mark at its begin, or by the zero bytes that letters of UTF-16 have. Without either it is UTF-8, and in
 * `REGEDIT4` the code page windows-1252. A sentence where it is none of them or not of a known version.
 */
export function registryText(bytes: Uint8Array): RegistryText | string {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const ansi = /^[ \t]*REGEDIT4[\r\n]/.test(whole.toString('latin1', 0, 64));
  const text = decoded(whole, ansi);
  if (typeof text !== 'string') return text.problem;
  const body = endOfLine(text, 0);
  const version = HEADERS[text.slice(0, body).replace(/^[ \t]+/, '')];
  if (version === undefined) {
    return `the first line is neither ${Object.keys(HEADERS)
      .map((header) => `"${header}"`)
      .join(' nor ')}`;
  }
  return { text, version, body };
}

/** Index of the line end at or after `from`, or of the end of the text. */
function endOfLine(text: string, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== '\n' && text[end] !== '\r') end += 1;
  return end;
}

/** Where windows-1252 is not Latin 1, from 0x80 on; some releases of Node decode it as if it were. */
const ANSI = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** `REGEDIT4` has the code page of the computer that wrote it; this is that of western Europe and America. */
export function ansiText(bytes: Buffer): string {
  return bytes.toString('latin1').replaceAll(/[\u0080-\u009f]/g, (char) => ANSI[char.charCodeAt(0) - 0x80] ?? char);
}

function decoded(bytes: Buffer, ansi: boolean): string | { problem: string } {
  const [first, second, third] = bytes;
  if (first === 0xff && second === 0xfe) return wide(bytes.subarray(2));
  if (first === 0xfe && second === 0xff) return wide(swapped(bytes.subarray(2)));
  if (first !== undefined && first !== 0 && second === 0) return wide(bytes);
  if (first === 0 && second !== undefined && second !== 0) return wide(swapped(bytes));
  const marked = first === 0xef && second === 0xbb && third === 0xbf;
  if (ansi && !marked) return ansiText(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { problem: 'it is neither UTF-16 nor UTF-8' };
  }
}

function wide(bytes: Buffer): string | { problem: string } {
  // A decoder of texts would replace an unpaired surrogate, which a value of the registry can hold.
  return bytes.length % 2 === 0
    ? bytes.toString('utf16le')
    : { problem: 'it ends in the middle of a UTF-16 character' };
}

function swapped(bytes: Buffer): Buffer {
  return bytes.length % 2 === 0 ? Buffer.from(bytes).swap16() : bytes;
}
