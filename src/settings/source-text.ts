/** Maximum document size in bytes. */
export const SIZE_LIMIT = 1024 * 1024;

/** Decoded text, or the reason and place of invalid input (offset in UTF-16 units of `text`, which ends there). */
export type SourceText = { text: string } | { problem: string; text: string; offset: number };

/** Decodes a document: at most 1 MiB of UTF-8 without control characters. */
export function readSource(source: string | Uint8Array): SourceText {
  const size = typeof source === 'string' ? Buffer.byteLength(source) : source.byteLength;
  if (size > SIZE_LIMIT) return { problem: `the document ${tooLong(size, SIZE_LIMIT)}`, text: '', offset: 0 };
  const decoded = typeof source === 'string' ? { text: source } : decode(source);
  if ('problem' in decoded) return decoded;
  const text = decoded.text.startsWith('\ufeff') ? decoded.text.slice(1) : decoded.text;
  const offset = controlCharacter(text);
  if (offset === -1) return { text };
  const code = text.charCodeAt(offset).toString(16).padStart(4, '0').toUpperCase();
  return { problem: `the document contains the control character U+${code}`, text, offset };
}

/**
 * Formats `has 17.3 MiB; at most 16 MiB are read`. For input of unknown size, such as a pipe, `size` is one byte over
 * the limit.
 * @param limit whole mebibytes, in bytes
 */
export function tooLong(size: number, limit: number): string {
  const most = limit / MEBIBYTE;
  const has = (size / MEBIBYTE).toFixed(1);
  if (has === most.toFixed(1)) return `has more than ${most} MiB, which is the most that is read`;
  return `has ${has} MiB; at most ${most} MiB ${most === 1 ? 'is' : 'are'} read`;
}

const MEBIBYTE = 1024 * 1024;

/** Converts offsets to lines and columns, starting at 1. The line index is built on first use. */
export function lineLookup(text: string): (offset: number) => { line: number; column: number } {
  let starts: number[] | undefined;
  return (offset) => {
    starts ??= lineStarts(text);
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

/**
 * True for UTF-16, with or without a byte order mark, as editors and the shell of Windows write it. It is not read as a document; registry files and
 * property lists have their own rules.
 */
export function isUtf16(bytes: Uint8Array): boolean {
  const [a, b, c, d] = bytes;
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return true;
  return (a === 0 && b !== 0 && c === 0 && d !== 0) || (a !== 0 && b === 0 && c !== 0 && d === 0);
}

/** The reason for refusing UTF-16, as the end of a sentence. */
export const IS_UTF16 = 'is UTF-16; save it as UTF-8';

function decode(bytes: Uint8Array): SourceText {
  if (isUtf16(bytes)) return { problem: `the document ${IS_UTF16}`, text: '', offset: 0 };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    const text = new TextDecoder('utf-8').decode(bytes);
    return { problem: 'the document is not UTF-8', text, offset: firstDifference(bytes, text) };
  }
}

/** Returns the offset of the first invalid byte. The text itself may contain U+FFFD, so the bytes are compared. */
function firstDifference(bytes: Uint8Array, text: string): number {
  let position = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  let offset = 0;
  for (const sign of text) {
    const expected = Buffer.from(sign);
    if (!expected.every((byte, index) => bytes[position + index] === byte)) break;
    position += expected.length;
    offset += sign.length;
  }
  return offset;
}

/**
 * Returns the offset of the first control character, or -1. U+007F is allowed in JSON: it needs no escaping, and programs that write JSON do not
 * escape it.
 */
function controlCharacter(text: string): number {
  const last = looksLikeJson(text) ? -1 : 0x7f;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === last || (code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d)) return index;
  }
  return -1;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let index = text.indexOf('\n'); index !== -1; index = text.indexOf('\n', index + 1)) starts.push(index + 1);
  return starts;
}

/** A syntax error of the YAML parser. */
interface SyntaxProblem {
  code: string;
  message: string;
}

/** True for text that starts like JSON. YAML may start like that too, and JSON wording fits it as well. */
export function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/** Words a syntax error for JSON; undefined if the parser's own message does not mention YAML. */
export function jsonMessage({ code, message }: SyntaxProblem): string | undefined {
  switch (code) {
    case 'MISSING_CHAR':
    case 'BAD_INDENT':
      return unclosedText(message);
    case 'BLOCK_IN_FLOW':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'a "," is missing after this value';
    case 'BAD_SCALAR_START':
      return 'invalid start of a value';
    case 'UNEXPECTED_TOKEN':
      return unexpectedText(message);
    default:
      return undefined;
  }
}

/** Words the parser's message about a missing token for people. */
export function unclosedText(message: string): string {
  if (/closing ["']quote/.test(message)) return 'a string is not closed: a quotation mark is missing';
  const bracket = /must .*end with an? ([}\]])/.exec(message)?.[1];
  if (bracket === '}') return 'an object is not closed: a "}" is missing here';
  if (bracket === ']') return 'a list is not closed: a "]" is missing here';
  return 'a ":" or a "," is missing here';
}

function unexpectedText(message: string): string {
  const sign = /^Unexpected ([,:]) in /.exec(message)?.[1];
  return sign === undefined ? 'unexpected content after the end of the document' : `unexpected "${sign}"`;
}
