import { keyAt, namesBelow, type RegistryKey, type RegistryValue } from './registry-key.ts';

const TYPES: Readonly<Record<string, string>> = {
  '0': 'REG_NONE',
  '1': 'REG_SZ',
  '2': 'REG_EXPAND_SZ',
  '3': 'REG_BINARY',
  '4': 'REG_DWORD',
  '5': 'REG_DWORD_BIG_ENDIAN',
  '7': 'REG_MULTI_SZ',
  b: 'REG_QWORD',
};
const TEXT = '"((?:[^"\\\\]|\\\\[\\s\\S])*)"';
const KEY = /^\[([^\]\r\n]*)\][ \t]*$/;
const TEXT_VALUE = new RegExp(`^(?:@|${TEXT})=${TEXT}[ \\t]*$`);
const OTHER_VALUE = new RegExp(`^(?:@|${TEXT})=(dword|hex(?:\\(([0-9a-f]+)\\))?):([0-9a-f, \\t]*)$`, 'i');

/**
 * Reads a file of the registry editor: UTF-16 with a mark, or UTF-8. What lies outside of `root` is passed over; `undefined`
 * when a line is not understood, so that nothing of a policy gets lost without a word.
 */
export function parseRegistryFile(root: string, bytes: Uint8Array): RegistryKey | undefined {
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe;
  const text = new TextDecoder(wide ? 'utf-16le' : 'utf-8').decode(bytes);
  const key: RegistryKey = { name: root, values: [], keys: [] };
  const [first, ...lines] = logicalLines(text);
  if (first !== 'Windows Registry Editor Version 5.00') return undefined;
  let at: RegistryKey | undefined;
  for (const line of lines) {
    const path = KEY.exec(line)?.[1];
    if (path !== undefined) {
      const names = namesBelow(root, path);
      at = names && keyAt(key, names);
      continue;
    }
    const value = registryValue(line);
    if (!value) return undefined;
    at?.values.push(value);
  }
  return key;
}

/** Lines with a value each: bytes go on after a backslash, and a text may go over several lines. */
function logicalLines(text: string): string[] {
  const lines: string[] = [];
  let open = '';
  for (const line of text.split(/\r\n|\r|\n/)) {
    const whole = open === '' ? line : `${open}${line}`;
    if (/=hex.*\\[ \t]*$/i.test(whole)) open = whole.replace(/\\[ \t]*$/, '').trimEnd();
    else if (isOpenText(whole)) open = `${whole}\n`;
    else {
      open = '';
      if (whole.trim() !== '' && !whole.trimStart().startsWith(';')) lines.push(whole.trim());
    }
  }
  return open === '' ? lines : [...lines, open];
}

function isOpenText(line: string): boolean {
  const text = /^(?:@|"(?:[^"\\]|\\[\s\S])*")="/.exec(line);
  return text !== null && !TEXT_VALUE.test(line.trimEnd());
}

function registryValue(line: string): RegistryValue | undefined {
  const text = TEXT_VALUE.exec(line);
  if (text) return { name: plain(text[1] ?? ''), type: 'REG_SZ', data: plain(text[2] ?? '') };
  const other = OTHER_VALUE.exec(line);
  if (!other) return undefined;
  const name = plain(other[1] ?? '');
  const digits = (other[4] ?? '').replaceAll(/[ \t]/g, '');
  if (other[2]?.toLowerCase() === 'dword') {
    return /^[0-9a-f]{1,8}$/i.test(digits) ? { name, type: 'REG_DWORD', data: Number.parseInt(digits, 16) } : undefined;
  }
  const bytes = bytesOf(digits);
  const type = TYPES[(other[3] ?? '3').toLowerCase()] ?? `type ${other[3]}`;
  return bytes && { name, type, data: dataOf(type, bytes) };
}

function dataOf(type: string, bytes: Buffer): RegistryValue['data'] {
  switch (type) {
    case 'REG_SZ':
      return bytes.toString('utf16le').replace(/\0$/, '');
    case 'REG_DWORD':
      return bytes.length === 4 ? bytes.readUInt32LE() : undefined;
    case 'REG_DWORD_BIG_ENDIAN':
      return bytes.length === 4 ? bytes.readUInt32BE() : undefined;
    case 'REG_MULTI_SZ':
      return textsOf(bytes.toString('utf16le'));
    default:
      return undefined;
  }
}

/** Each text ends with a NUL, and the list with one more. */
function textsOf(joined: string): string[] {
  const body = joined.replace(/\0$/, '');
  if (body === '') return [];
  return body.replace(/\0$/, '').split('\0');
}

function bytesOf(digits: string): Buffer | undefined {
  if (digits === '') return Buffer.alloc(0);
  const pairs = digits.split(',');
  if (!pairs.every((pair) => /^[0-9a-f]{1,2}$/i.test(pair))) return undefined;
  return Buffer.from(pairs.map((pair) => Number.parseInt(pair, 16)));
}

function plain(escaped: string): string {
  return escaped.replaceAll(/\\([\s\S])/g, '$1');
}
