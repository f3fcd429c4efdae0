import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { addArchive, saveArchive } from '../../../src/drivers/guest-images/archive.ts';
import { manifestText } from '../../../src/drivers/guest-images/image.ts';
import { imageStore } from '../../../src/drivers/guest-images/store.ts';
import { diskHeader } from '../../helpers/disk-header.ts';
import { packed } from '../../helpers/tar.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';
import { sampleImage } from './guest-image.ts';

const never = new AbortController().signal;

async function savedSample() {
  const directory = temporaryDirectory();
  const image = await sampleImage(imageStore(join(directory, 'images')));
  const path = join(directory, 'image.tar');
  await saveArchive(image, path, never);
  return { directory, image, path };
}

/** An archive of these entries. */
const archive = (
  entries: readonly { name: string; text?: string; type?: 'symlink' | 'directory' }[],
): Promise<Buffer> =>
  packed(
    entries.map(({ type, text = '', ...entry }) => {
      if (type === undefined) return { ...entry, text };
      return { ...entry, type, ...(type === 'symlink' ? { linkname: '/etc/passwd' } : {}) };
    }),
  );

describe('an image archive', () => {
  test('extracts to the same image, compressed or not', async () => {
    const { directory, image, path } = await savedSample();
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path)));
    for (const [index, file] of [path, `${path}.gz`].entries()) {
      const other = imageStore(join(directory, `other-${index}`));
      const taken = await addArchive(file, other, never);
      expect({ ...taken, directory: '' }).toEqual({ ...image, directory: '' });
      expect(await other.list()).toEqual([taken]);
      await other.verify(taken, never);
    }
  });

  test('has the same bytes every time', async () => {
    const { directory, image, path } = await savedSample();
    await saveArchive(image, join(directory, 'again.tar'), never);
    expect(readFileSync(join(directory, 'again.tar')).equals(readFileSync(path))).toBe(true);
  });

  test('keeps the existing file when it cannot be written', async () => {
    const { directory, image, path } = await savedSample();
    const before = statSync(path).size;
    const gone = { ...image, directory: join(directory, 'nowhere') };
    await expect(saveArchive(gone, path, never)).rejects.toMatchObject({ code: 'ERR_IO' });
    expect(statSync(path).size).toBe(before);
    expect(readdirSync(directory).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  test('can be extracted again over an existing image', async () => {
    const { directory, image, path } = await savedSample();
    const store = imageStore(join(directory, 'images'));
    expect(await addArchive(path, store, never)).toEqual(image);
    expect(await store.list()).toEqual([image]);
  });

  test.each<[string, (saved: Awaited<ReturnType<typeof savedSample>>) => Promise<Buffer> | Buffer, string]>([
    ['nothing', () => Buffer.alloc(0), 'it is empty'],
    ['no archive', () => Buffer.from('hello\n'.repeat(500)), 'it is damaged or not a tar archive'],
    ['the first half', ({ path }) => readFileSync(path).subarray(0, 30_000), 'it is damaged or not a tar archive'],
    ['half a compressed file', ({ path }) => gzipSync(readFileSync(path)).subarray(0, 400), 'it is damaged'],
    [
      'a changed byte',
      ({ path }) => {
        const bytes = readFileSync(path);
        const at = bytes.indexOf('disk.qcow2 a\ndisk');
        bytes.write('D', at);
        return bytes;
      },
      'a file in it does not match the checksum',
    ],
    ['another file first', () => archive([{ name: 'vmlinuz', text: 'x' }]), 'it does not begin with manifest.json'],
    [
      'a manifest alone',
      ({ image }) => archive([{ name: 'manifest.json', text: manifestText(image) }]),
      'vmlinuz, initrd, disk.qcow2 is missing',
    ],
    [
      'a file that leads elsewhere',
      ({ image }) =>
        archive([
          { name: 'manifest.json', text: manifestText(image) },
          { name: '../../x', text: 'y' },
        ]),
      'does not belong to the image',
    ],
    [
      'a link',
      ({ image }) =>
        archive([
          { name: 'manifest.json', text: manifestText(image) },
          { name: 'vmlinuz', type: 'symlink' },
        ]),
      'is not a regular file',
    ],
    [
      'a file of another size',
      ({ image }) =>
        archive([
          { name: 'manifest.json', text: manifestText(image) },
          { name: 'vmlinuz', text: 'y' },
        ]),
      'vmlinuz in it has 1 bytes',
    ],
  ])('is refused when it is %s, and leaves nothing', async (_, bytes, reason) => {
    const saved = await savedSample();
    const file = join(saved.directory, 'bad.tar');
    writeFileSync(file, await bytes(saved));
    const root = join(saved.directory, 'other');
    await expect(addArchive(file, imageStore(root), never)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringContaining(reason),
    });
    expect(readdirSync(root)).toEqual([]);
  });

  test.each([
    ['a backing file', diskHeader({ backing: '/etc/passwd' }), 'its disk is unsafe: its header names a backing file'],
    ['a data file', diskHeader({ features: 4n }), 'its disk is unsafe: its header names an external data file'],
    ['no header', Buffer.from('raw'), 'its disk is unsafe: it is not a qcow2 disk'],
  ])('is refused when its disk has %s, although all sums are right', async (_, disk, reason) => {
    const directory = temporaryDirectory();
    const image = await sampleImage(
      imageStore(join(directory, 'images')),
      'a',
      '2026-11-01T12:00:00.000Z',
      'x86_64',
      disk,
    );
    const file = join(directory, 'bad.tar');
    await saveArchive(image, file, never);
    const root = join(directory, 'other');
    await expect(addArchive(file, imageStore(root), never)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: `${file} is not a guest image: ${reason}`,
    });
    expect(readdirSync(root)).toEqual([]);
  });

  test('is refused before extraction when the disk is too small for its declared size', async () => {
    const { directory, image } = await savedSample();
    const { disk } = image.files;
    const huge = { ...image, files: { ...image.files, disk: { ...disk, bytes: Number.MAX_SAFE_INTEGER } } };
    const file = join(directory, 'huge.tar');
    writeFileSync(file, await archive([{ name: 'manifest.json', text: manifestText(huge) }]));
    const root = join(directory, 'other');
    await expect(addArchive(file, imageStore(root), never)).rejects.toMatchObject({
      code: 'ERR_IO',
      message: expect.stringMatching(/ needs 8192\.0 TiB, and .+ has .+ free/),
    });
    expect(readdirSync(root)).toEqual([]);
  });
});
