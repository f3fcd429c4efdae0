/** The text of a file of the registry editor. */
export interface RegistryText {
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
export function endOfLine(text: string, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== '\n' && text[end] !== '\r') end += 1;
  return end;
}

/** Where windows-1252 is not Latin 1, from 0x80 on; some releases of Node decode it as if it were. */
const ANSI = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** `REGEDIT4` has the code page of the computer that wrote it; this is that of western Europe and America. */
export function ansiText(bytes: Buffer): string {
  return bytes.toString('latin1').replaceAll(/[\u0080-\u009f]/g, (sign) => ANSI[sign.charCodeAt(0) - 0x80] ?? sign);
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
  // A decoder of texts would replace half a surrogate pair, which a value of the registry can hold.
  return bytes.length % 2 === 0 ? bytes.toString('utf16le') : { problem: 'it ends inside of a UTF-16 character' };
}

function swapped(bytes: Buffer): Buffer {
  return bytes.length % 2 === 0 ? Buffer.from(bytes).swap16() : bytes;
}
