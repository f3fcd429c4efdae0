import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { withoutDevices } from '../../cli/commands/cp/copy.ts';
import { readLayers } from '../../src/drivers/image-layers/layers.ts';
import { extract, fullBudget } from '../../src/features/extensions/extract.ts';
import { tarReader } from '../../src/os/tar.ts';
import { packed, tarOf } from '../helpers/tar.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** An archive with one file, whose header has these bytes in place of its size. */
function withSize(size: Buffer, kind = '0'): Buffer {
  const archive = tarOf([{ path: 'file', content: 'text' }]);
  size.copy(archive, 124);
  archive.write(kind, 156);
  archive.write(' '.repeat(8), 148);
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return archive;
}

/** The names in an archive, and the length of each content. */
async function read(archive: Buffer): Promise<[string, number][]> {
  const reader = tarReader();
  Readable.from([archive]).pipe(reader);
  const found: [string, number][] = [];
  for await (const entry of reader) {
    let bytes = 0;
    for await (const chunk of entry) if (chunk instanceof Uint8Array) bytes += chunk.length;
    found.push([entry.header.name, bytes]);
  }
  return found;
}

const SIZES: [string, Buffer][] = [
  ['of another base', Buffer.concat([Buffer.from([0x81]), Buffer.alloc(11)])],
  ['of letters', Buffer.from('abcdefghijk\0')],
  ['below zero', Buffer.alloc(12, 0xff).fill(0xf0, 11)],
  ['beyond all numbers', Buffer.from([0x80, ...Buffer.alloc(11, 0xff)])],
];

test.each(SIZES)('an entry with a size %s is refused by every reader', async (_what, size) => {
  const archive = withSize(size);
  await expect(read(archive)).rejects.toThrow(/not a number|Invalid header|Unexpected end/);
  const layer = async function* () {
    yield archive;
  };
  await expect(readLayers(1, layer)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  await expect(withoutDevices(layer(), () => undefined).toArray()).rejects.toThrow();
  const extraction = extract(layer(), join(temporaryDirectory(), 'out'), fullBudget());
  await expect(extraction).rejects.toMatchObject({ code: 'ERR_EXTENSION_INVALID' });
});

test('a directory with a size has no content', async () => {
  const size = Buffer.from('00000000000\0');
  const directory = withSize(Buffer.from('00000001000\0'), '5').subarray(0, 512);
  const file = withSize(size).subarray(0, 512);
  expect(await read(Buffer.concat([directory, file, Buffer.alloc(1024)]))).toEqual([
    ['file', 0],
    ['file', 0],
  ]);
});

test('ordinary entries are read as they are', async () => {
  const archive = await packed([
    { name: 'a/', type: 'directory' },
    { name: 'a/b', text: 'text' },
    { name: 'c', text: '' },
  ]);
  expect(await read(archive)).toEqual([
    ['a/', 0],
    ['a/b', 4],
    ['c', 0],
  ]);
});
