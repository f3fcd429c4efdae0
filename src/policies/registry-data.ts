import type { RegistryValue } from './registry-key.ts';

/** The types of values by their numbers, as `winnt.h` has them. */
const TYPES = [
  'REG_NONE',
  'REG_SZ',
  'REG_EXPAND_SZ',
  'REG_BINARY',
  'REG_DWORD',
  'REG_DWORD_BIG_ENDIAN',
  'REG_LINK',
  'REG_MULTI_SZ',
  'REG_RESOURCE_LIST',
  'REG_FULL_RESOURCE_DESCRIPTOR',
  'REG_RESOURCE_REQUIREMENTS_LIST',
  'REG_QWORD',
] as const;

/** `REG_SZ`; `type 4096` for a number without a name. */
export function typeName(type: number): string {
  return TYPES[type] ?? `type ${type}`;
}

/** What the bytes of a value mean; `undefined` for a type that is not looked into, or bytes that do not fit the type. */
export function dataOf(type: string, bytes: Buffer, textOf = wideText): RegistryValue['data'] {
  switch (type) {
    case 'REG_SZ':
      return withoutEnd(textOf(bytes));
    case 'REG_DWORD':
      return bytes.length === 4 ? bytes.readUInt32LE() : undefined;
    case 'REG_DWORD_BIG_ENDIAN':
      return bytes.length === 4 ? bytes.readUInt32BE() : undefined;
    case 'REG_MULTI_SZ':
      return textsOf(textOf(bytes));
    default:
      return undefined;
  }
}

/** UTF-16LE; half a surrogate pair stays what it is. `undefined` where a byte is left over. */
export function wideText(bytes: Buffer): string | undefined {
  return bytes.length % 2 === 0 ? bytes.toString('utf16le') : undefined;
}

/** A text without the NULs that end it. */
function withoutEnd(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  let end = text.length;
  while (text[end - 1] === '\0') end -= 1;
  return text.slice(0, end);
}

/** Each text ends with a NUL, and the list with one more. */
function textsOf(joined: string | undefined): string[] | undefined {
  if (joined === undefined) return undefined;
  const body = joined.replace(/\0$/, '');
  if (body === '') return [];
  return body.replace(/\0$/, '').split('\0');
}
