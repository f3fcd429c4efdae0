import { describe, expect, test } from 'vitest';
import { parseRegistryFile, type RegistryFile, readRegistryFile } from '../../profiles/formats/reg.ts';
import { isRegistryFile } from '../../profiles/formats/reg-statements.ts';
import type { RegistryKey, RegistryValue } from '../../profiles/formats/registry.ts';

const FIVE = 'Windows Registry Editor Version 5.00';
const KEY = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\X';

function read(bytes: Uint8Array): RegistryFile {
  const file = readRegistryFile(bytes);
  if (typeof file === 'string') throw new Error(file);
  return file;
}

const file = (...lines: string[]) => read(Buffer.from([FIVE, ...lines].join('\n')));
/** Lines below one key. */
const below = (...lines: string[]) => file(`[${KEY}]`, ...lines);

/** `KEY: name` of every value. */
function flat(keys: readonly RegistryKey[], path = ''): Record<string, Omit<RegistryValue, 'name'>> {
  return Object.assign(
    {},
    ...keys.flatMap(({ name, values, keys: inner }) => {
      const at = path === '' ? name : `${path}\\${name}`;
      return [...values.map(({ name: value, ...rest }) => ({ [`${at}: ${value}`]: rest })), flat(inner, at)];
    }),
  );
}

const values = ({ hives, problems }: RegistryFile) => {
  expect(problems).toEqual([]);
  return flat(hives);
};
const text = (data: string) => ({ type: 'REG_SZ', data });
const number = (data: number) => ({ type: 'REG_DWORD', data });

describe('encodings', () => {
  const words = `${FIVE}\r\n[${KEY}]\r\n"a"="é中😀"\r\n`;
  const wide = Buffer.from(words, 'utf16le');
  const big = Buffer.from(wide).swap16();
  test.each([
    ['UTF-8', Buffer.from(words)],
    ['UTF-8 with a mark', Buffer.from(`\ufeff${words}`)],
    ['UTF-16LE', wide],
    ['UTF-16LE with a mark', Buffer.concat([Buffer.from([0xff, 0xfe]), wide])],
    ['UTF-16BE', big],
    ['UTF-16BE with a mark', Buffer.concat([Buffer.from([0xfe, 0xff]), big])],
    // At any offset in the memory of another array.
    ['a part of an array', Buffer.concat([Buffer.from('x'), wide]).subarray(1)],
    ['a plain array', new Uint8Array(wide)],
  ])('%s', (_name, bytes) => {
    expect(isRegistryFile(bytes)).toBe(true);
    expect(values(read(bytes))).toEqual({ [`${KEY}: a`]: text('é中😀') });
  });

  test('an unpaired surrogate is kept', () => {
    const bytes = Buffer.from(`\ufeff${FIVE}\n[${KEY}]\n"a"="x\ud800y"\n`, 'utf16le');
    expect(values(read(bytes))).toEqual({ [`${KEY}: a`]: text('x\ud800y') });
  });

  test('REGEDIT4 uses a code page, in texts stored as bytes too', () => {
    const lines = `REGEDIT4\r\n\r\n[${KEY}]\r\n"caf\xe9"="\x80 5"\r\n"b"=hex(1):e9,00\r\n"c"=hex(7):61,00,80,00,00\r\n`;
    expect(values(read(Buffer.from(lines, 'latin1')))).toEqual({
      [`${KEY}: café`]: text('€ 5'),
      [`${KEY}: b`]: text('é'),
      [`${KEY}: c`]: { type: 'REG_MULTI_SZ', data: ['a', '€'] },
    });
  });

  test.each([
    ['neither UTF-16 nor UTF-8', Buffer.from(`${FIVE}\n"caf\xe9"="a"\n`, 'latin1'), 'it is neither UTF-16 nor UTF-8'],
    ['half a character', wide.subarray(0, wide.length - 1), 'it ends in the middle of a UTF-16 character'],
    ['another first line', Buffer.from('REGEDIT\n'), 'the first line is neither'],
    ['another version', Buffer.from('Windows Registry Editor Version 6.00\n'), 'the first line is neither'],
    ['text before the first line', Buffer.from(`; x\n${FIVE}\n`), 'the first line is neither'],
    ['nothing', Buffer.alloc(0), 'the first line is neither'],
  ])('%s', (_name, bytes, reason) => {
    expect(readRegistryFile(bytes)).toContain(reason);
  });

  test('other files are not taken for a registry file', () => {
    for (const other of ['', 'version: 19', '{"version":19}', 'PReg', `x${FIVE}`, 'Windows Registry']) {
      expect(isRegistryFile(Buffer.from(other)), other).toBe(false);
    }
    expect(isRegistryFile(Buffer.from(`${FIVE}\n; ${'é'.repeat(200)}`))).toBe(true);
    expect(isRegistryFile(Buffer.from('REGEDIT4'))).toBe(true);
  });
});

describe('lines', () => {
  test.each(['\n', '\r\n', '\r'])('end with %j', (end) => {
    const bytes = Buffer.from([FIVE, '', `[${KEY}]`, '"a"=dword:1', '', '"b"=what', '"c"=hex:1,\\', '2,x'].join(end));
    const { hives, problems } = read(bytes);
    expect(flat(hives)).toEqual({ [`${KEY}: a`]: number(1) });
    expect(problems.map(({ line }) => line)).toEqual([6, 7, 8]);
  });

  test('blanks and comments', () => {
    expect(
      values(
        below(
          '  ; "no"="no"',
          '\t"a" = "x;y" ; after a text',
          '"b"=dword: 0000000A ;after a number',
          '"c"=hex(4):1,0,0,0 ; after bytes',
          '"d"=hex:\\ ; in bytes',
          ' ; between bytes',
          '',
          '  7, 8,\\',
          '9',
          `  [${KEY}\\Y] ; after a key`,
          '@=""',
        ),
      ),
    ).toEqual({
      [`${KEY}: a`]: text('x;y'),
      [`${KEY}: b`]: number(10),
      [`${KEY}: c`]: number(1),
      [`${KEY}: d`]: { type: 'REG_BINARY', data: undefined },
      [`${KEY}\\Y: `]: text(''),
    });
  });

  test('texts and names with special characters', () => {
    expect(
      values(below('"a\\\\b\\"="="\\\\\\"[x]=;\\\\"', '"[c]=;"="first\r', 'second"', '"@"="@"', '"-"="-"')),
    ).toEqual({
      [`${KEY}: a\\b"=`]: text('\\"[x]=;\\'),
      [`${KEY}: [c]=;`]: text('first\r\nsecond'),
      [`${KEY}: @`]: text('@'),
      [`${KEY}: -`]: text('-'),
    });
  });

  test('hives by both names, in any case; keys with brackets', () => {
    const { hives, problems } = file(
      '[hkey_local_machine\\A]',
      '[HKCU\\B]',
      '[HKU\\S-1-5-21]',
      '[HKEY_CLASSES_ROOT]',
      '[HKLM\\a\\c]d [e]]',
      '[HKLM\\trailing\\]',
    );
    expect(problems).toEqual([]);
    expect(paths(hives)).toEqual([
      'HKEY_LOCAL_MACHINE',
      'HKEY_LOCAL_MACHINE\\A',
      'HKEY_LOCAL_MACHINE\\A\\c]d [e]',
      'HKEY_LOCAL_MACHINE\\trailing',
      'HKEY_CURRENT_USER',
      'HKEY_CURRENT_USER\\B',
      'HKEY_USERS',
      'HKEY_USERS\\S-1-5-21',
      'HKEY_CLASSES_ROOT',
    ]);
  });

  test('bytes of every type', () => {
    const types = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'B', 'ffff'];
    const read = values(below(...types.map((type) => `"${type}"=hex(${type}):78,00,00,00`)));
    expect(Object.values(read)).toEqual([
      { type: 'REG_NONE', data: undefined },
      text('x'),
      { type: 'REG_EXPAND_SZ', data: undefined },
      { type: 'REG_BINARY', data: undefined },
      number(0x78),
      { type: 'REG_DWORD_BIG_ENDIAN', data: 0x7800_0000 },
      { type: 'REG_LINK', data: undefined },
      { type: 'REG_MULTI_SZ', data: ['x'] },
      { type: 'REG_RESOURCE_LIST', data: undefined },
      { type: 'REG_FULL_RESOURCE_DESCRIPTOR', data: undefined },
      { type: 'REG_RESOURCE_REQUIREMENTS_LIST', data: undefined },
      { type: 'REG_QWORD', data: undefined },
      { type: 'type 65535', data: undefined },
    ]);
  });

  test('numbers with too few bytes, texts without an end or with several', () => {
    expect(
      Object.values(
        values(below('"a"=hex(4):1,0', '"b"=hex(1):', '"c"=hex(1):78,0', '"d"=hex(1):78,0,0,0,0,0', '"e"=hex(7):')),
      ),
    ).toEqual([
      { type: 'REG_DWORD', data: undefined },
      text(''),
      text('x'),
      text('x'),
      { type: 'REG_MULTI_SZ', data: [] },
    ]);
  });
});

describe('what is not understood is reported with its line and a reason', () => {
  test.each([
    ['nonsense', 'not a key, a value or a comment'],
    ['"a"', 'no "=" follows'],
    ['"a=1', 'the name has no closing quotation mark'],
    ['"a\\"="x"', 'no "=" follows'],
    ['"a\\n"="x"', 'a single "\\" in the name must be'],
    ['"a"="C:\\temp"', 'a single "\\" in the string must be'],
    // A line end for wine; an author who wrote it by hand meant a directory.
    ['"a"="C:\\new"', 'a single "\\" in the string must be'],
    ['"a"="x"y', 'there is text after the closing quotation mark'],
    // As the compatible tool writes a quotation mark.
    ['"a"="say \\\\"hi\\\\""', 'there is text after the closing quotation mark'],
    ['"a"="open', 'the string has no closing quotation mark'],
    ['"a"="nul\0"', 'NUL'],
    ['"a"=', 'after "="'],
    ['"a"=1', 'after "="'],
    ['"a"=--', 'there is text after the "-"'],
    ['"a"=dword:', '1 to 8 hexadecimal digits'],
    ['"a"=dword:123456789', '1 to 8 hexadecimal digits'],
    ['"a"=dword:-1', '1 to 8 hexadecimal digits'],
    ['"a"=dword:1g', 'there is text after the number'],
    ['"a"=hex:1g', 'there is text after the bytes'],
    ['"a"=hex:123', 'bytes are 1 or 2'],
    ['"a"=hex:01,,02', 'bytes are 1 or 2'],
    ['"a"=hex:01,', 'bytes are missing at the end'],
    ['"a"=hex:01,\\', 'bytes are missing at the end'],
    ['"a"=hex:01,\\ x', 'there is text after the "\\"'],
    // For these wine sets nothing, silently; the registry editor never writes them.
    ['"a"=hex:01 ,02', 'there is text after the bytes'],
    ['"a"=DWORD:1', 'after "="'],
    ['"a"=HEX:01', 'after "="'],
    ['"a"=hex():01', 'after "="'],
    ['"a"=hex(1):78', 'the bytes end in the middle of a character'],
    ['"a"=qword:1', 'after "="'],
    ['[HKLM\\a', 'no closing bracket'],
    ['[HKLM\\a]b', 'there is text after the closing bracket'],
    ['[HKLM\\\\a]', 'an empty name'],
    ['[ HKLM\\a]', 'not in a hive'],
    ['[SOFTWARE\\a]', 'not in a hive'],
    ['[--HKLM\\a]', 'not in a hive'],
    ['[]', 'not in a hive'],
    [`[HKLM\\${'x'.repeat(256)}]`, 'more than 255 characters'],
    [`[HKLM${'\\x'.repeat(513)}]`, 'more than 512 names'],
    [`"${'x'.repeat(16_384)}"=dword:1`, 'more than 16383 characters'],
  ])('%s', (line, reason) => {
    const { problems } = file(`[${KEY}]`, '; comment', line);
    expect(problems).toEqual([{ line: 4, reason: expect.stringContaining(reason) }]);
    expect(parseRegistryFile(KEY, Buffer.from([FIVE, `[${KEY}]`, line].join('\n')))).toBeUndefined();
  });

  test('a continued line of bytes, for which Windows sets nothing', () => {
    for (const blank of ['', '  ']) {
      const { hives, problems } = below('"a"=hex:01,\\', `${blank}\\`, '02', '"b"=hex:\\', '02');
      expect(problems[0]).toEqual({ line: 3, reason: 'a "\\" is where bytes should continue' });
      expect(Object.keys(flat(hives))).toEqual([`${KEY}: b`]);
    }
  });

  test.each([
    [`[${KEY}\\images]`, 'a single "\\" in the string must be written as "\\\\"'],
    ['"b"=dword:1', 'there is text after the closing quotation mark'],
  ])('an unclosed text before %s is reported', (next, consequence) => {
    const { problems } = below('"a"="x', next);
    expect(problems[0]).toEqual({
      line: 3,
      reason: `the string has no closing quotation mark on its line, and does not continue on the next ones: ${consequence}`,
    });
  });

  test('later lines are parsed on their own', () => {
    const { problems, hives } = below('"a"="open', '"b"=dword:1', 'nonsense', '"c"=dword:2');
    expect(problems.map(({ line }) => line)).toEqual([3, 5]);
    expect(flat(hives)).toEqual({ [`${KEY}: b`]: number(1), [`${KEY}: c`]: number(2) });
  });

  test('values without a key, and below one that is deleted or not understood', () => {
    const { problems, hives } = file('"a"=dword:1', `[-${KEY}]`, '"b"=dword:1', '[nowhere]', '"c"=dword:1');
    expect(problems).toEqual([
      { line: 2, reason: 'the value comes before any key' },
      { line: 4, reason: 'the value belongs to a key that is deleted' },
      { line: 5, reason: 'the key is not in a hive of the registry' },
    ]);
    expect(flat(hives)).toEqual({});
  });

  test('only the first hundred are reported', () => {
    expect(file(...Array.from({ length: 1000 }, () => 'x')).problems).toHaveLength(100);
  });
});

describe('duplicates and deletions', () => {
  test('a repeated key is one key, and the later value wins', () => {
    const { dropped, ...rest } = below('"A"=dword:1', '"b"=dword:2', `[${KEY.toUpperCase()}]`, '"a"="x"', '"c"=""');
    expect(values({ dropped, ...rest })).toEqual({
      [`${KEY}: a`]: text('x'),
      [`${KEY}: b`]: number(2),
      [`${KEY}: c`]: text(''),
    });
    expect(dropped).toEqual([{ at: 3, key: KEY, value: 'A', reason: 'it is set again in line 6' }]);
  });

  test('deletions remove what came before them, and are reported', () => {
    const { dropped, hives } = file(
      `[${KEY}\\Y]`,
      '"a"=dword:1',
      `[${KEY}]`,
      '"b"=dword:1',
      '@="x"',
      '"B"=-',
      '@=-',
      `[-${KEY.toLowerCase()}\\y]`,
      `[${KEY}\\Y]`,
      '"c"=dword:1',
      `[-HKCU\\Z]`,
    );
    const instruction = { reason: 'it is a deletion, and profiles can only set values', deletion: true };
    expect(dropped).toEqual([
      { at: 5, key: KEY, value: 'b', reason: 'line 7 deletes it' },
      { at: 7, key: KEY, value: 'B', ...instruction },
      { at: 6, key: KEY, value: '', reason: 'line 8 deletes it' },
      { at: 8, key: KEY, value: '', ...instruction },
      { at: 3, key: `${KEY}\\Y`, value: 'a', reason: 'line 9 deletes its key' },
      { at: 9, key: `${KEY}\\Y`, ...instruction },
      { at: 12, key: 'HKEY_CURRENT_USER\\Z', ...instruction },
    ]);
    expect(flat(hives)).toEqual({ [`${KEY}\\Y: c`]: number(1) });
  });

  test('a policy with any of these is refused, because reg.exe writes none', () => {
    const bytes = (...lines: string[]) => Buffer.from([FIVE, ...lines].join('\r\n'));
    expect(parseRegistryFile(KEY, bytes(`[${KEY}]`, '"a"=dword:1'))?.values).toHaveLength(1);
    expect(parseRegistryFile(KEY, bytes('[HKCU]', '"a"=dword:1'))).toEqual({ name: KEY, values: [], keys: [] });
    for (const line of ['"a"=-', `[-${KEY}]`, '"A"=dword:2']) {
      expect(parseRegistryFile(KEY, bytes(`[${KEY}]`, '"a"=dword:1', line)), line).toBeUndefined();
    }
    expect(parseRegistryFile(KEY, Buffer.from(`REGEDIT4\n[${KEY}]\n"a"=dword:1`))).toBeUndefined();
  });
});

function paths(keys: readonly RegistryKey[], above = ''): string[] {
  return keys.flatMap(({ name, keys: inner }) => [`${above}${name}`, ...paths(inner, `${above}${name}\\`)]);
}
