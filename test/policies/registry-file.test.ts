import { describe, expect, test } from 'vitest';
import { parseRegistryFile } from '../../profiles/formats/reg.ts';
import { isRegistryFile, RegistryFileProblem, registryEntries, registryText } from '../../profiles/formats/reg-file.ts';
import type { RegistryKey, RegistryValue } from '../../profiles/formats/registry.ts';
import { RegistryContents } from '../../profiles/formats/registry-contents.ts';

const FIVE = 'Windows Registry Editor Version 5.00';
const KEY = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\X';

/** All keys of a file. */
function read(bytes: Uint8Array): readonly RegistryKey[] {
  const contents = new RegistryContents(() => true);
  for (const { line, names, value } of registryEntries(registryText(bytes))) {
    const problem = contents.add(names, value);
    if (problem !== undefined) throw new RegistryFileProblem(problem, line);
  }
  return contents.hives;
}

/** The line of the refusal and its reason. */
function refusal(bytes: Uint8Array): { line: number | undefined; message: string } {
  try {
    read(bytes);
  } catch (error) {
    if (error instanceof RegistryFileProblem) return { line: error.line, message: error.message };
    throw error;
  }
  throw new Error('it was read');
}

const bytesOf = (...lines: string[]) => Buffer.from([FIVE, ...lines].join('\n'));
const file = (...lines: string[]) => read(bytesOf(...lines));
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

const text = (data: string) => ({ type: 'REG_SZ', data });
const number = (data: number) => ({ type: 'REG_DWORD', data });

describe('encodings', () => {
  const words = `${FIVE}\r\n[${KEY}]\r\n"a"="é中😀"\r\n`;
  const wide = Buffer.from(words, 'utf16le');
  const marked = Buffer.concat([Buffer.from([0xff, 0xfe]), wide]);
  test.each([
    ['UTF-8', Buffer.from(words)],
    ['UTF-8 with a mark', Buffer.from(`\ufeff${words}`)],
    ['UTF-16LE', marked],
    // At any offset in the memory of another array.
    ['a part of an array', Buffer.concat([Buffer.from('x'), marked]).subarray(1)],
    ['a plain array', new Uint8Array(marked)],
  ])('%s', (_name, bytes) => {
    expect(isRegistryFile(bytes)).toBe(true);
    expect(flat(read(bytes))).toEqual({ [`${KEY}: a`]: text('é中😀') });
  });

  test('an unpaired surrogate is kept', () => {
    const bytes = Buffer.from(`\ufeff${FIVE}\n[${KEY}]\n"a"="x\ud800y"\n`, 'utf16le');
    expect(flat(read(bytes))).toEqual({ [`${KEY}: a`]: text('x\ud800y') });
  });

  const encoding = 'it is neither UTF-8 nor UTF-16LE with a byte order mark';
  test.each([
    ['neither UTF-16 nor UTF-8', Buffer.from(`${FIVE}\n"caf\xe9"="a"\n`, 'latin1'), encoding],
    ['half a character', marked.subarray(0, marked.length - 1), encoding],
    ['UTF-16BE', Buffer.from(marked).swap16(), encoding],
    ['UTF-16LE without a mark', wide, /first line|neither/],
    ['REGEDIT4', Buffer.from(`REGEDIT4\n[${KEY}]\n"a"=dword:1\n`), 'the first line is not "Windows'],
    ['another version', Buffer.from('Windows Registry Editor Version 6.00\n'), 'the first line is not "Windows'],
    ['text after the first line', Buffer.from(`${FIVE} x\n`), 'the first line is not "Windows'],
  ])('%s is refused as a registry file', (_name, bytes, reason) => {
    expect(isRegistryFile(bytes)).toBe(true);
    expect(refusal(bytes)).toEqual({ line: undefined, message: expect.stringMatching(reason) });
  });

  test.each([
    ['another first line', Buffer.from(`; x\n${FIVE}\n`)],
    ['nothing', Buffer.alloc(0)],
  ])('%s is refused', (_name, bytes) => {
    expect(refusal(bytes).message).toContain('the first line is not');
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
    const lines = [FIVE, '', `[${KEY}]`, '"a"=dword:1', '', '"c"=hex(4):1,\\', ' 0,0,0'];
    expect(flat(read(Buffer.from(lines.join(end))))).toEqual({ [`${KEY}: a`]: number(1), [`${KEY}: c`]: number(1) });
    expect(refusal(Buffer.from([...lines, '', '"b"=what'].join(end))).line).toBe(9);
  });

  test('blanks and comments', () => {
    expect(
      flat(
        below(
          '  ; "no"="no"',
          '\t"a" = "x;y" ; after a text',
          '"b"=dword: 0000000A ;after a number',
          '"c"=hex(4):1,0,0,0 ; after bytes',
          '"d"=hex:\\',
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
    expect(flat(below('"a\\\\b\\"="="\\\\\\"[x]=;\\\\"', '"[c]=;"="first\r', 'second"', '"@"="@"', '"-"="-"'))).toEqual(
      {
        [`${KEY}: a\\b"=`]: text('\\"[x]=;\\'),
        [`${KEY}: [c]=;`]: text('first\r\nsecond'),
        [`${KEY}: @`]: text('@'),
        [`${KEY}: -`]: text('-'),
      },
    );
  });

  test('hives by both names, in any case; keys with brackets', () => {
    const hives = file(
      '[hkey_local_machine\\A]',
      '[HKCU\\B]',
      '[HKU\\S-1-5-21]',
      '[HKEY_CLASSES_ROOT]',
      '[HKLM\\a\\c]d [e]]',
      '[HKLM\\trailing\\]',
    );
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
    const read = flat(below(...types.map((type) => `"${type}"=hex(${type}):78,00,00,00`)));
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
        flat(below('"a"=hex(4):1,0', '"b"=hex(1):', '"c"=hex(1):78,0', '"d"=hex(1):78,0,0,0,0,0', '"e"=hex(7):')),
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

describe('the first line that is not understood is refused with its number and a reason', () => {
  test.each([
    ['nonsense', 'not a key, a value or a comment'],
    ['"a"', 'no "=" follows'],
    ['"a=1', 'the name has no closing quotation mark'],
    ['"a\\"="x"', 'no "=" follows'],
    ['"a\\n"="x"', 'a single "\\" in the name must be'],
    ['"a"="C:\\temp"', 'a single "\\" in the string must be'],
    // A line end for wine; an author who wrote it by hand meant a directory.
    ['"a"="C:\\new"', 'a single "\\" in the string must be'],
    ['"a"="x"y', 'there is text after the value'],
    // As the compatible tool writes a quotation mark.
    ['"a"="say \\\\"hi\\\\""', 'there is text after the value'],
    ['"a"="open', 'the string has no closing quotation mark'],
    ['"a"="nul\0"', 'NUL'],
    ['"a"=', 'after "="'],
    ['"a"=1', 'after "="'],
    ['"a"=-', 'it is a deletion'],
    [`[-${KEY}]`, 'it is a deletion'],
    ['"a"=dword:', '1 to 8 hexadecimal digits'],
    ['"a"=dword:123456789', '1 to 8 hexadecimal digits'],
    ['"a"=dword:-1', '1 to 8 hexadecimal digits'],
    ['"a"=dword:1g', 'there is text after the value'],
    ['"a"=hex:1g', 'there is text after the value'],
    ['"a"=hex:123', 'there is text after the value'],
    ['"a"=hex:01,,02', 'no byte of 1 or 2'],
    ['"a"=hex:01,', 'no byte of 1 or 2'],
    ['"a"=hex:01,\\', 'no byte of 1 or 2'],
    ['"a"=hex:01,\\ x', 'no byte of 1 or 2'],
    // For these wine sets nothing, silently; the registry editor never writes them.
    ['"a"=hex:01 ,02', 'there is text after the value'],
    ['"a"=DWORD:1', 'after "="'],
    ['"a"=HEX:01', 'after "="'],
    ['"a"=hex():01', 'after "="'],
    ['"a"=hex(1):78', 'the bytes end in the middle of a character'],
    ['"a"=qword:1', 'after "="'],
    ['"a"=hex:01, ;x', 'no byte of 1 or 2'],
    ['[HKLM\\a', 'no closing bracket'],
    ['[HKLM\\a]b', 'there is text after it'],
    ['[HKLM\\\\a]', 'an empty name'],
    ['[ HKLM\\a]', 'not in a hive'],
    ['[SOFTWARE\\a]', 'not in a hive'],
    ['[]', 'not in a hive'],
    [`[HKLM${'\\x'.repeat(64)}]`, 'more than 64 names'],
  ])('%s', (line, reason) => {
    const bytes = bytesOf(`[${KEY}]`, '; comment', line);
    expect(refusal(bytes)).toEqual({ line: 4, message: expect.stringContaining(reason) });
    expect(() => parseRegistryFile('HKLM', bytes)).toThrow(RegistryFileProblem);
  });

  test('a continued line of bytes, for which Windows sets nothing', () => {
    for (const blank of ['', '  ']) {
      const { line, message } = refusal(bytesOf(`[${KEY}]`, '"a"=hex:01,\\', `${blank}\\`, '02'));
      expect({ line, message }).toEqual({ line: 3, message: expect.stringContaining('no byte of 1 or 2') });
    }
  });

  test.each([
    [`[${KEY}\\images]`, 'a single "\\" in the string must be written as "\\\\"'],
    ['"b"=dword:1', 'there is text after the value'],
  ])('an unclosed text before %s is refused where it begins', (next, message) => {
    expect(refusal(bytesOf(`[${KEY}]`, '"a"="x', next))).toEqual({ line: 3, message });
  });

  test('a value without a key', () => {
    expect(refusal(bytesOf('', '"a"=dword:1'))).toEqual({ line: 3, message: 'the value comes before any key' });
  });

  test('more keys and values of the application than any profile has', () => {
    const lines = Array.from({ length: 5001 }, (_, index) => `"${index}"=dword:1`);
    expect(refusal(bytesOf(`[${KEY}]`, ...lines))).toEqual({
      line: 5002,
      message: 'the file has more than 5000 keys and values of the application',
    });
  });
});

describe('duplicates', () => {
  test('a repeated key is one key, and a value may be repeated as it is', () => {
    expect(flat(below('"A"=dword:1', '"b"=dword:2', `[${KEY.toUpperCase()}]`, '"a"=dword:00000001', '"c"=""'))).toEqual(
      { [`${KEY}: A`]: number(1), [`${KEY}: b`]: number(2), [`${KEY}: c`]: text('') },
    );
  });

  test.each(['"a"=dword:2', '"a"="1"', '"a"=hex(5):0,0,0,1'])('a value that changes to %s is refused', (line) => {
    expect(refusal(bytesOf(`[${KEY}]`, '"A"=dword:1', `[${KEY.toUpperCase()}]`, line))).toEqual({
      line: 5,
      message: 'the file sets this value twice, differently',
    });
  });
});

test('of a policy only its own key is read', () => {
  const other = 'HKCU\\SOFTWARE\\X';
  expect(parseRegistryFile(KEY, bytesOf(`[${KEY}]`, '"a"=dword:1', `[${other}]`, '"b"=dword:1'))).toEqual({
    name: KEY,
    values: [{ name: 'a', ...number(1) }],
    keys: [],
  });
  expect(parseRegistryFile('HKLM\\SOFTWARE\\X', bytesOf(`[${KEY}\\Y]`, '"a"=dword:1')).keys).toHaveLength(1);
  expect(parseRegistryFile(KEY, bytesOf('[HKCU]', '"a"=dword:1'))).toEqual({ name: KEY, values: [], keys: [] });
});

function paths(keys: readonly RegistryKey[], above = ''): string[] {
  return keys.flatMap(({ name, keys: inner }) => [`${above}${name}`, ...paths(inner, `${above}${name}\\`)]);
}
