import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { diskProblem, headerProblem, virtualBytes } from '../../src/os/disk-header.ts';
import { diskHeader, type HeaderOptions } from '../helpers/disk-header.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const FEATURE_NAMES = 0x6803f857;
const BACKING_FORMAT = 0xe2792aca;
const DATA_FILE_NAME = 0x44415441;
const BACKING = 'its header names a backing file';
const DATA = 'its header names an external data file';
const PIB = 2 ** 50;

test.each<[string, HeaderOptions]>([
  ['of version 2', { version: 2 }],
  ['of version 3', {}],
  ['with a longer header', { headerBytes: 112, extensions: [[0, '']] }],
  [
    'with extensions that name nothing',
    {
      extensions: [
        [FEATURE_NAMES, 'dirty bit'],
        [0x12345678, ''],
      ],
    },
  ],
  ['that was not closed', { features: 1n }],
  ['with zstd and extended L2 entries', { features: 0b11000n }],
  ['with the largest size', { bytes: 2 * PIB }],
  ['with the smallest and largest clusters', { clusterBits: 21 }],
])('a disk %s may be opened', (_what, options) => {
  expect(headerProblem(diskHeader(options))).toBeUndefined();
});

test.each<[string, HeaderOptions, string]>([
  ['a backing file', { backing: '/home/user/.ssh/id_ed25519' }, BACKING],
  ['a backing file in version 2', { version: 2, backing: 'nbd://example.com/disk' }, BACKING],
  ['the format of a backing file', { extensions: [[BACKING_FORMAT, 'raw']] }, BACKING],
  ['that in version 2', { version: 2, extensions: [[BACKING_FORMAT, 'raw']] }, BACKING],
  ['a data file', { features: 4n }, DATA],
  [
    'the name of a data file alone',
    {
      extensions: [
        [FEATURE_NAMES, 'x'],
        [DATA_FILE_NAME, '/etc/passwd'],
      ],
    },
    DATA,
  ],
  ['an unknown feature', { features: 0x21n }, 'it needs unknown features (0x20)'],
  ['the last feature', { features: 1n << 63n }, 'it needs unknown features (0x8000000000000000)'],
  ['another version', { version: 4 }, 'it has version 4 of qcow2, and only 2 and 3 are known'],
  ['encryption', { encryption: 2 }, 'it is encrypted'],
  ['an absurd size', { bytes: 4 * PIB }, 'its size of 4503599627370496 bytes is more than any program can use'],
  [
    'extensions without end',
    { clusterBits: 21, extensions: [[FEATURE_NAMES, 'x'.repeat(2 ** 17)]] },
    'its header has more than 65536 bytes',
  ],
])('a disk with %s may not be opened', (_what, options, why) => {
  expect(headerProblem(diskHeader(options).subarray(0, 2 ** 16))).toEqual({ why, isDamage: false });
});

test.each<[string, Buffer, string]>([
  ['nothing', Buffer.alloc(0), 'it is not a qcow2 disk'],
  ['something else', Buffer.alloc(4096, 'x'), 'it is not a qcow2 disk'],
  ['half a header', diskHeader().subarray(0, 90), 'it ends within its header'],
  ['no end of its header', diskHeader({ ends: false }), 'it ends within its header'],
  ['the mark of corruption', diskHeader({ features: 2n }), 'it is marked as corrupt'],
  ['impossible clusters', diskHeader({ clusterBits: 64 }), 'its clusters have 2^64 bytes'],
  ['a short header', diskHeader({ headerBytes: 72 }), 'its header has 72 bytes'],
  ['a header of several clusters', diskHeader({ headerBytes: 65537 }), 'its header has 65537 bytes'],
  [
    'an extension of several clusters',
    diskHeader({ clusterBits: 9, extensions: [[FEATURE_NAMES, 'x'.repeat(512)]] }),
    'its header is longer than its first cluster',
  ],
])('a file with %s is a damaged disk', (_what, header, why) => {
  expect(headerProblem(header)).toEqual({ why, isDamage: true });
});

test('an extension that ends with the first cluster needs no end', () => {
  const extensions = [[FEATURE_NAMES, 'x'.repeat(512 - 104 - 8)]] as const;
  expect(headerProblem(diskHeader({ clusterBits: 9, extensions, ends: false }))).toBeUndefined();
});

/** Changes that reach every field more often than chance does. */
const changes = fc.array(fc.tuple(fc.nat({ max: 140 }), fc.nat({ max: 255 })), { maxLength: 6 });

test('any change of a header leaves it safe, or has a reason', () => {
  fc.assert(
    fc.property(fc.constantFrom(2, 3), changes, fc.nat({ max: 200 }), (version, bytes, length) => {
      const header = diskHeader({ version, extensions: [[FEATURE_NAMES, 'dirty bit']] });
      for (const [at, byte] of bytes) if (at < header.length) header[at] = byte;
      const problem = headerProblem(header.subarray(0, length));
      if (problem) {
        expect(problem.why).toMatch(/^its? /);
        return;
      }
      // What is let through names nothing.
      expect(header.subarray(0, 4).toString('latin1')).toBe('QFI\xfb');
      expect(header.subarray(8, 20).every((byte) => byte === 0)).toBe(true);
      expect(header.readUInt32BE(32)).toBe(0);
      if (header.readUInt32BE(4) === 3) expect(header.readBigUInt64BE(72) & ~0b11001n).toBe(0n);
    }),
  );
});

test('bytes by chance never end in another error', () => {
  const beginning = diskHeader().subarray(0, 32);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      for (const header of [Buffer.from(bytes), Buffer.concat([beginning, bytes])]) {
        const problem = headerProblem(header);
        if (problem) expect(problem).toEqual({ why: expect.any(String), isDamage: expect.any(Boolean) });
      }
    }),
  );
});

test('only regular files are read', async () => {
  const directory = temporaryDirectory();
  const [disk, link, folder] = ['disk', 'link', 'folder'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(disk, diskHeader({ bytes: 4096 }));
  symlinkSync(disk, link);
  mkdirSync(folder);
  expect(await diskProblem(disk)).toBeUndefined();
  expect(await virtualBytes(disk)).toBe(4096);
  for (const path of [link, folder, '/dev/zero']) {
    expect(await diskProblem(path), path).toEqual({ why: 'it is not a regular file', isDamage: false });
    expect(await virtualBytes(path), path).toBeUndefined();
  }
  await expect(diskProblem(join(directory, 'none'))).rejects.toMatchObject({ code: 'ERR_IO' });
});
