import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { plistImporter } from '../../../profiles/formats/plist.ts';
import { binaryPlist } from '../../../profiles/formats/plist-binary.ts';
import { type BinaryClaims, binaryPlistOf, text } from '../../helpers/binary-plist.ts';
import { runs } from '../../helpers/rounds.ts';

/** Created with Python's `plistlib`. */
const GOLDEN = 'test/golden/profiles/import';
const golden = (name: string) => readFileSync(join(GOLDEN, name));

async function settingsIn(bytes: Uint8Array) {
  const [part] = await plistImporter.read(bytes, 'a.plist');
  return part;
}

describe.each(['values.xml.plist', 'values.binary.plist'])('%s', (name) => {
  test('is read completely, including keys such as __proto__', async () => {
    const read = await settingsIn(golden(name));
    expect(read?.settings).toEqual(JSON.parse(golden('values.json').toString()));
    expect(Object.keys(read?.settings.diagnostics ?? {})).toEqual(['mutedChecks']);
    expect(JSON.stringify(read?.settings)).toContain('"__proto__":true');
    expect(read?.lost).toEqual([]);
  });
});

const refusedFor = (what: string) => `the application refuses the whole profile because of it: it is ${what}`;

test.each([
  ['others.xml.plist', []],
  ['others.binary.plist', [{ place: 'uid', reason: refusedFor('a UID'), refused: true }]],
])('%s: what no setting can be is reported as lost, with its path', async (name, more) => {
  const read = await settingsIn(golden(name));
  expect(read?.settings).toEqual({
    version: 19,
    kubernetes: { enabled: true },
    images: {},
    containerEngine: { allowedImages: {} },
    big: 2 ** 64,
  });
  const lost = [
    { place: 'containerEngine.allowedImages.patterns.1', reason: refusedFor('a date'), refused: true },
    { place: 'images.namespace', reason: refusedFor('data'), refused: true },
    { place: 'kubernetes.when', reason: refusedFor('a date'), refused: true },
    ...more,
  ];
  expect([...(read?.lost ?? [])].sort((a, b) => (a.place < b.place ? -1 : 1))).toEqual(lost);
});

describe('a malicious property list', () => {
  const nested = Array.from({ length: 120 }, (_, index) => [0xa1, index + 1]);
  /** Each list contains the next one fourteen times: 14^20 values. */
  const wide = Array.from({ length: 20 }, (_, index) => [0xae, ...Array(14).fill(index + 1)]);
  const cases: [name: string, objects: number[][], reason: RegExp, claims?: BinaryClaims][] = [
    ['holds itself', [[0xa1, 0]], /nests deeper than 100 levels/],
    ['holds itself further down', [[0xd1, 1, 2], text('a'), [0xa1, 3], [0xa1, 0]], /nests deeper than 100 levels/],
    ['nests deeply', [...nested, text('a')], /nests deeper than 100 levels/],
    ['multiplies', [...wide, [0x09]], /more than 1000000 values/],
    ['refers outside of its objects', [[0xa1, 7]], /it is damaged/],
    ['has an offset before the objects', [[0x09]], /it is damaged/, { offsets: [3] }],
    ['has an offset after the objects', [[0x09]], /it is damaged/, { offsets: [9] }],
    ['has an enormous count', [[0xaf, 0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]], /it is damaged/],
    ['has an enormous string', [[0x6f, 0x12, 0x7f, 0xff, 0xff, 0xff]], /it is damaged/],
    ['has a count of sixteen bytes', [[0x5f, 0x14, ...Array(16).fill(0)]], /it is damaged/],
    ['has a count that is a text', [[0x5f, 0x51, 0x61]], /it is damaged/],
    ['ends inside of an integer', [[0x13, 0]], /it is damaged/],
    ['has an integer of 32 bytes', [[0x15, ...Array(32).fill(0)]], /it is damaged/],
    ['has a real of 2 bytes', [[0x21, 0, 0]], /it is damaged/],
    ['has an unknown object', [[0xf0]], /it is damaged/],
    ['has an unknown simple object', [[0x0a]], /it is damaged/],
    ['has letters beyond ASCII', [[0x51, 0xe9]], /it is damaged/],
    ['has a key twice', [[0xd2, 1, 1, 2, 2], text('a'), [0x09]], /"a" appears twice/],
    ['has a key that is no text', [[0xd1, 1, 1], [0x09]], /key is not a string/],
    ['has no objects', [[0x09]], /it is damaged/, { count: 0 }],
    ['has more objects than offsets', [[0x09]], /it is damaged/, { count: 9000 }],
    ['has a top that is not there', [[0x09]], /it is damaged/, { top: 1 }],
    ['has its table outside', [[0x09]], /it is damaged/, { table: 100_000 }],
    ['has its table in the header', [[0x09]], /it is damaged/, { table: 4 }],
    ['has offsets of no bytes', [[0x09]], /it is damaged/, { offsetSize: 0 }],
    ['has references of nine bytes', [[0x09]], /it is damaged/, { referenceSize: 9 }],
    ['is of another version', [[0x09]], /binary version is unknown/, { header: 'bplist15' }],
  ];
  test.each(cases)('%s', (_, objects, reason, claims) => {
    expect(() => binaryPlist(binaryPlistOf(objects, claims))).toThrow(reason);
  });

  describe('a text of a megabyte', () => {
    const SIZE = 2 ** 20;
    const long = (kind: number, width: number) => [kind, 0x12, 0, 0x10, 0, 0, ...Array(SIZE * width).fill(0x61)];
    const list = (items: readonly number[]) => [0xaf, 0x11, items.length >> 8, items.length & 0xff, ...items];

    test('with many references to one object reads it once', () => {
      const read = binaryPlist(binaryPlistOf([list(Array(38).fill(1)), long(0x5f, 1)]));
      expect(read).toEqual(Array(38).fill('a'.repeat(SIZE)));
    });

    test.each([
      ['in ASCII', 0x5f, 1],
      ['in UTF-16', 0x6f, 2],
    ])('with too many references to %s is refused', (_name, kind, width) => {
      const bytes = binaryPlistOf([list(Array(1000).fill(1)), long(kind, width)]);
      expect(() => binaryPlist(bytes)).toThrow(/more than 40000000 characters/);
    });

    test('with too many objects is refused', () => {
      const items = Array.from({ length: 200 }, (_, index) => index + 1);
      const objects = [list(items), long(0x5f, 1), ...Array(199).fill([])];
      const offsets = [8, ...items.map(() => 8 + list(items).length)];
      expect(() => binaryPlist(binaryPlistOf(objects, { offsets }))).toThrow(/more than 40000000 characters/);
    });
  });

  test('with overlapping lists is checked before it is expanded', () => {
    // Every list extends over all that follow it.
    const count = 2 ** 18;
    const lists = Array.from({ length: 20 }, (_, index) => [0xaf, 0x12, 0, 4, 0, 0, index + 1]);
    const bytes = binaryPlistOf([...lists, Array(count).fill(20)]);
    expect(() => binaryPlist(bytes)).toThrow(/more than 1000000 values/);
  });

  test('a duplicate key is reported briefly and without control characters', () => {
    const key = [0x6f, 0x11, 0x01, 0x00, ...Array.from({ length: 256 }, () => [0x20, 0x2e]).flat()];
    const bytes = binaryPlistOf([[0xd2, 1, 1, 2, 2], key, [0x09]]);
    expect(() => binaryPlist(bytes)).toThrow(`the key "${'\\u202e'.repeat(40)}…" appears twice`);
  });

  test('any changed or truncated bytes lead to an answer', async () => {
    const whole = golden('values.binary.plist');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }),
        fc.nat(whole.length),
        async (changes, cut) => {
          const bytes = Buffer.from(whole);
          for (const [at, byte] of changes) bytes.writeUInt8(byte, at);
          const damaged = changes.length === 0 ? bytes.subarray(0, cut) : bytes;
          await plistImporter.read(damaged, 'a.plist').catch((error) => {
            expect(error).toMatchObject({ code: 'ERR_PROFILE_INVALID' });
          });
        },
      ),
      { numRuns: runs(2000) },
    );
  });
});

test('types that only newer writers use', () => {
  expect(binaryPlist(binaryPlistOf([[0xa5, 1, 2, 3, 4, 5], [0x00], [0x0c], [0xb0], [0xc0], [0x80, 1]]))).toEqual([
    { other: 'null' },
    { other: 'a URL' },
    { other: 'a set' },
    { other: 'a set' },
    { other: 'a UID' },
  ]);
});

test('integers of up to four bytes are unsigned, longer ones signed', () => {
  const bytes = (...values: number[]) => values;
  const list = [
    bytes(0xa5, 1, 2, 3, 4, 5),
    bytes(0x10, 0xff),
    bytes(0x12, 0xff, 0xff, 0xff, 0xff),
    bytes(0x13, ...Array(8).fill(0xff)),
    bytes(0x14, ...Array(15).fill(0), 7),
    bytes(0x22, 0x7f, 0x80, 0, 0),
  ];
  expect(binaryPlist(binaryPlistOf(list))).toEqual([255, 0xffffffff, -1, 7, { other: 'not a finite number' }]);
});
