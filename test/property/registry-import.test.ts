import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeRegistryFile, type ImportedPart } from '../../profiles/formats/format.ts';
import { registryPolImporter } from '../../profiles/formats/pol.ts';
import { regExporter, regImporter } from '../../profiles/formats/reg.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { RdError } from '../../src/errors.ts';
import { isObject, type JsonValue } from '../../src/json.ts';
import { isSection } from '../../src/settings/fields.ts';
import { type PolEntry, polFile, polList, polNumber, polText } from '../helpers/pol-writer.ts';
import { rounds, runs } from '../helpers/rounds.ts';
import { payloadArbitrary } from '../helpers/settings-arbitrary.ts';

const HEADER = 'Windows Registry Editor Version 5.00';
const PRODUCT = 'SOFTWARE\\Policies\\Rancher Desktop';

/** The parts, or nothing when the file is properly refused. */
async function readOrRefuse(read: Promise<ImportedPart[]>): Promise<ImportedPart[] | undefined> {
  try {
    return await read;
  } catch (error) {
    if (!(error instanceof RdError) || error.code !== 'ERR_PROFILE_INVALID') throw error;
    expect(error.message).not.toBe('');
    return undefined;
  }
}

/** Values that became settings, and those reported as lost. */
function accounted(parts: readonly ImportedPart[]): number {
  const lost = parts.flatMap((part) => part.lost);
  const values = lost.map(({ reason }) => Number(/ \((\d+) values?\)$/.exec(reason)?.[1] ?? 1));
  // Foreign ones are only counted.
  const others = parts
    .flatMap(({ notes = [] }) => notes)
    .map((note) => Number(/: (\d+) values? .*in keys of other programs/.exec(note)?.[1] ?? 0));
  return (
    parts.reduce((count, { settings }) => count + valuesIn(settings), 0) +
    [...values, ...others].reduce((sum, count) => sum + count, 0)
  );
}

function valuesIn(value: JsonValue, path = ''): number {
  if (!isObject(value) || (path !== '' && !isSection(path))) return isObject(value) ? Object.keys(value).length : 1;
  return Object.entries(value).reduce(
    (sum, [name, inner]) => sum + valuesIn(inner, path === '' ? name : `${path}.${name}`),
    0,
  );
}

const NAMES = [
  'version',
  'VERSION',
  'enabled',
  'port',
  'name',
  'list',
  'patterns',
  'showAll',
  'integrations',
  'x',
  'debian',
  'kubernetes',
  '',
];
const KEYS = [
  ...['Locked', 'LOCKED', 'Defaults', 'Other'].flatMap((part) =>
    [
      '',
      '\\kubernetes',
      '\\WSL\\integrations',
      '\\WSL\\integrations\\x',
      '\\containerEngine\\allowedImages',
      '\\images',
      '\\unheard\\of',
    ].map((below) => `${PRODUCT}\\${part}${below}`),
  ),
  'SOFTWARE\\Rancher Desktop\\Profile\\Locked',
  'SOFTWARE\\Rancher Desktop\\Profile\\Defaults\\images',
  'SOFTWARE',
  PRODUCT,
  'SYSTEM\\x',
];
const HIVES = ['HKLM', 'HKEY_LOCAL_MACHINE', 'HKCU', 'HKEY_USERS\\S-1-5-21', 'HKEY_USERS', 'HKCR'];
const DATA = [
  'dword:0',
  'dword:13 ; x',
  'dword:6',
  '"text"',
  '""',
  '"two\r\nlines [x] ;"',
  'hex(7):61,00,00,00,\\\r\n  62,00,00,00,00,00',
  'hex(1):78,00,00,00',
  'hex:01',
  'hex(b):01,00,00,00,00,00,00,00',
  'hex(2):00,00',
];

/** Hives with two names. */
const hiveOf: Readonly<Record<string, string>> = { HKLM: 'HKEY_LOCAL_MACHINE' };
const key = fc.tuple(fc.constantFrom(...HIVES), fc.constantFrom(...KEYS));
const entries = fc.uniqueArray(
  fc.record({
    key,
    name: fc.constantFrom(...NAMES),
    data: fc.constantFrom(...DATA),
    blank: fc.constantFrom('', ' ; "a"=dword:1', '\t'),
  }),
  {
    maxLength: 40,
    selector: ({ key: [hive, path], name }) => `${hiveOf[hive] ?? hive}\\${path}: ${name}`.toLowerCase(),
  },
);

test('every value of a registry file is a setting or reported as lost', async () => {
  let counted = 0;
  await fc.assert(
    fc.asyncProperty(entries, async (values) => {
      const lines = values.flatMap(({ key: [hive, path], name, data, blank }) => [
        `[${hive}\\${path}]`,
        blank,
        `${name === '' ? '@' : `"${name}"`}=${data}`,
      ]);
      const bytes = Buffer.from([HEADER, ...lines].join('\r\n'));
      const [parts, refused] = await regImporter.read(bytes, 'x.reg').then(
        (read) => [read, undefined] as const,
        (error: unknown) => [undefined, error] as const,
      );
      if (!parts) {
        expect(refused).toMatchObject({ message: 'x.reg contains no deployment profile' });
        return;
      }
      counted += 1;
      expect(accounted(parts)).toBe(values.length);
    }),
    { numRuns: runs(500) },
  );
  expect(counted).toBeGreaterThan(rounds(20, 100));
});

test('so is every value of a policy file', async () => {
  const entry = fc
    .tuple(fc.constantFrom(...KEYS), fc.constantFrom(...NAMES), fc.integer({ min: 0, max: 3 }))
    .map(([path, at, kind]): PolEntry => {
      if (kind === 0) return polText(path, at, 'text');
      if (kind === 1) return polNumber(path, at, 6);
      if (kind === 2) return polList(path, at, ['a', 'b']);
      return { key: path, name: at, type: 3, data: Buffer.from('x') };
    });
  const selector = ({ key: path, name }: PolEntry) => `${path}: ${name}`.toLowerCase();
  let counted = 0;
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(entry, { maxLength: 40, selector }), async (all) => {
      // A deletion of what is set later, as Group Policy writes it, is no loss.
      const deletions = all.map(({ key: path, name }) => polText(path, `**del.${name}`, ' '));
      const parts = await readOrRefuse(registryPolImporter.read(polFile([...deletions, ...all]), 'Registry.pol'));
      if (!parts) return;
      counted += 1;
      expect(accounted(parts)).toBe(all.length);
    }),
    { numRuns: runs(300) },
  );
  expect(counted).toBeGreaterThan(rounds(20, 100));
});

describe('damaged files are read or rejected', () => {
  /** Cuts, repeats, swaps and inserts pieces. */
  const damage = fc.array(
    fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      length: fc.nat(6),
      insert: fc.oneof(
        fc.constantFrom(
          '"',
          '\\',
          '[',
          ']',
          '=',
          '-',
          ';',
          '@',
          '\r',
          '\n',
          ',',
          'hex(7):',
          'dword:',
          '"\\"',
          '\0',
          '\ufeff',
          '\ud800',
        ),
        fc.string({ unit: 'binary', maxLength: 3 }),
      ),
    }),
    { minLength: 1, maxLength: 6 },
  );

  test.each(['utf-8', 'utf-16le'] as const)('in text, %s', async (encoding) => {
    await fc.assert(
      fc.asyncProperty(payloadArbitrary('win32'), damage, async (settings, damages) => {
        let text = regExporter.text(await deploymentTree(settings), { part: 'locked', hive: 'hklm' });
        for (const { at, length, insert } of damages) {
          const index = Math.floor(at * text.length);
          text = `${text.slice(0, index)}${insert}${text.slice(index + length)}`;
        }
        await readOrRefuse(regImporter.read(encodeRegistryFile(text, encoding), 'x.reg'));
      }),
      { numRuns: runs(300) },
    );
  });

  test('in the bytes of either format', async () => {
    const pol = polFile([
      polNumber(`${PRODUCT}\\Locked`, 'version', 19),
      polText(`${PRODUCT}\\Locked\\images`, 'namespace', 'x'),
    ]);
    const reg = Buffer.from(`\ufeff${HEADER}\r\n[HKLM\\${PRODUCT}\\Locked]\r\n"version"=dword:13\r\n`, 'utf16le');
    const change = fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(255)), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(change, fc.double({ min: 0, max: 1, noNaN: true }), async (changes, end) => {
        for (const [importer, whole] of [
          [registryPolImporter, pol],
          [regImporter, reg],
        ] as const) {
          const bytes = Buffer.from(whole.subarray(0, Math.ceil(end * whole.length)));
          for (const [at, byte] of changes) bytes[Math.floor(at * bytes.length)] = byte;
          await readOrRefuse(importer.read(bytes, 'file'));
        }
      }),
      { numRuns: runs(500) },
    );
  });
});

describe('hostile files of many megabytes are handled in time', () => {
  const SIZE = rounds(512, 2048) * 1024;
  const filled = (start: string, piece: string, end = '') =>
    Buffer.from(`${HEADER}\n[HKLM\\${PRODUCT}\\Locked]\n${start}${piece.repeat(Math.ceil(SIZE / piece.length))}${end}`);

  // Quadratic work would take days here.
  test.each<[string, Buffer]>([
    ['lines of one character', filled('', 'x\n')],
    ['empty lines', filled('', '\n')],
    ['comments', filled('', ';\n')],
    ['a text that never ends', filled('"a"="', 'x\n')],
    ['texts that never end', filled('', '@="\n')],
    ['escapes that never end', filled('"a"="', '\\\\')],
    ['quotation marks', filled('', '"')],
    ['escaped quotation marks', filled('@="', '\\"')],
    ['a name that never ends', filled('"', 'x')],
    ['brackets', filled('', '[')],
    ['keys without an end', filled('', '[x\n')],
    ['bytes, each on its line', filled('"a"=hex(7):', '1,\\\n')],
    ['bytes that never end', filled('', '"a"=hex:1,\\\n')],
    ['NULs in a text', filled('"a"=hex(1):', '0,', '0')],
    ['empty entries of a list', filled('"a"=hex(7):', '0,', '0')],
    ['blanks', filled('"a"=', ' ')],
    ['a key of many names', filled('[HKLM', '\\a', ']')],
    ['one value again and again', filled('', '@=-\n')],
    ['a key deleted again and again', filled('', '[-HKLM\\a]\n')],
    ['keys as deep as can be', filled('', `[HKLM${'\\a'.repeat(512)}]\n@=""\n`)],
    ['empty lines in a text', filled('"a"="', '\n')],
    ['lines that continue', filled('"a"=hex:', '\\\n')],
  ])(
    '%s',
    async (_name, bytes) => {
      await readOrRefuse(regImporter.read(bytes, 'x.reg'));
    },
    60_000,
  );

  test('many keys and values with different names', async () => {
    const lines = Array.from({ length: 100_000 }, (_, index) => `[HKLM\\a${index}]\n"${index}"=""`);
    const bytes = Buffer.from([HEADER, `[HKLM\\${PRODUCT}\\Locked]`, '"version"=dword:13', ...lines, ''].join('\n'));
    const [part] = await regImporter.read(bytes, 'x.reg');
    expect(part?.lost).toEqual([]);
    expect(part?.notes).toEqual([expect.stringContaining('x.reg: 100000 values in keys of other programs')]);
  }, 120_000);

  // Millions of keys.
  test('deep keys with different names', async () => {
    const own = '\\a'.repeat(50);
    const lines = Array.from({ length: SIZE / 64 }, (_, index) => `[HKLM\\Rancher Desktop\\a${index}${own}]\n@=""`);
    const bytes = Buffer.from([HEADER, ...lines].join('\n'));
    await expect(regImporter.read(bytes, 'x.reg')).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: expect.stringMatching(/^x\.reg:\d+: the file has more than \d+ keys and values of the application$/),
    });
    const entries = Array.from({ length: 6000 }, (_, index) => polNumber(`Rancher Desktop\\a${index}`, 'x', index));
    await expect(registryPolImporter.read(polFile(entries), 'Registry.pol')).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: expect.stringMatching(/the file has more than \d+ keys and values of the application$/),
    });
  }, 120_000);

  test('a policy file with many entries, and one with an endless text', async () => {
    const entries = Array.from({ length: 30_000 }, (_, index) => polNumber(`a${index}`, 'x', index));
    await readOrRefuse(registryPolImporter.read(polFile(entries), 'Registry.pol'));
    const long = Buffer.concat([polFile([]), Buffer.from('['), Buffer.alloc(1), Buffer.alloc(SIZE, 'x')]);
    await readOrRefuse(registryPolImporter.read(long, 'Registry.pol'));
  }, 120_000);
});
