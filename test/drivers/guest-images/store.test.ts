import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { digestOf, manifestText, parseManifest } from '../../../src/drivers/guest-images/image.ts';
import { imageStore } from '../../../src/drivers/guest-images/store.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';
import { sampleImage } from './guest-image.ts';

const never = new AbortController().signal;

describe('the image store', () => {
  test('keeps an image under the digest of its manifest, and finds it again', async () => {
    const root = join(temporaryDirectory(), 'images');
    const store = imageStore(root);
    expect(await store.list()).toEqual([]);
    const image = await sampleImage(store);
    expect(image.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(readdirSync(root)).toEqual([image.digest.replace(':', '-')]);
    expect(readdirSync(image.directory).sort()).toEqual(['disk.qcow2', 'initrd', 'manifest.json', 'vmlinuz']);
    expect(await imageStore(root).list()).toEqual([image]);
    for (const wanted of [image.digest, image.digest.slice(7), image.digest.slice(7, 14), 'debian-a']) {
      expect(await store.find(wanted)).toEqual(image);
    }
    await store.verify(image, never);
  });

  test('stores the same files as the same image', async () => {
    const store = imageStore(temporaryDirectory());
    const image = await sampleImage(store);
    expect(await sampleImage(store)).toEqual(image);
    expect(await store.list()).toHaveLength(1);
  });

  test('lists the newest first, and a name means the newest', async () => {
    const store = imageStore(temporaryDirectory());
    const old = await sampleImage(store, 'a', '2026-01-01T00:00:00.000Z');
    const young = await sampleImage(store, 'a', '2026-02-01T00:00:00.000Z');
    expect(await store.list()).toEqual([young, old]);
    expect(await store.find('debian-a')).toEqual(young);
  });

  test('lists what exists when an image is not found', async () => {
    const store = imageStore(temporaryDirectory());
    const image = await sampleImage(store);
    await expect(store.find('debian-b')).rejects.toMatchObject({
      code: 'ERR_NOT_FOUND',
      details: [`${image.digest.slice(0, 19)} debian-a`],
    });
    await expect(store.find('../../etc')).rejects.toMatchObject({ code: 'ERR_NOT_FOUND' });
  });

  test('reports a file that differs from what was stored', async () => {
    const store = imageStore(temporaryDirectory());
    const image = await sampleImage(store);
    const disk = join(image.directory, 'disk.qcow2');
    const text = readFileSync(disk);
    text[100] = (text[100] ?? 0) ^ 1;
    writeFileSync(disk, text);
    await expect(store.verify(image, never)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: `the guest image debian-a is damaged: ${disk} has changed`,
    });
  });

  test('ignores an image whose manifest was changed, and leaves it in place', async () => {
    const root = temporaryDirectory();
    const store = imageStore(root);
    const image = await sampleImage(store);
    const manifest = join(image.directory, 'manifest.json');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('debian-a', 'debian-z'));
    expect(await store.list()).toEqual([]);
    await sampleImage(store, 'b');
    expect(existsSync(manifest)).toBe(true);
  });

  test('removes an image, and leftovers of killed commands', async () => {
    const root = temporaryDirectory();
    const store = imageStore(root);
    const image = await sampleImage(store);
    await store.remove(image);
    expect(readdirSync(root)).toEqual([]);
    mkdirSync(join(root, '.draft-dead'));
    writeFileSync(join(root, '.draft-dead', 'owner.json'), JSON.stringify({ pid: 2 ** 22 + 1, started: 'never' }));
    mkdirSync(join(root, '.gone-x'));
    const present = await store.draft();
    const other = await store.draft();
    expect(readdirSync(root).sort()).toEqual(
      [present, other].map(({ directory }) => directory.slice(root.length + 1)).sort(),
    );
    await Promise.all([present.discard(), other.discard()]);
    expect(readdirSync(root)).toEqual([]);
  });
});

describe('a manifest', () => {
  const file = { name: 'vmlinuz', bytes: 1, sha256: 'a'.repeat(64) };
  const whole = {
    format: 1,
    name: 'debian-12',
    architecture: 'x86_64',
    created: '2026-11-01T12:00:00.000Z',
    rootBytes: 1,
    files: { kernel: file, initrd: file, disk: file },
  };
  test('lists the features of an image, and has the old text when there are none', () => {
    const text = manifestText({ ...whole, format: 1, features: [] });
    expect(text).not.toContain('features');
    expect(text).toBe(manifestText({ ...whole, format: 1 }));
    expect(parseManifest(text)).toEqual(whole);
    const special = manifestText({ ...whole, format: 1, features: ['9p'] });
    expect(parseManifest(special)).toEqual({ ...whole, features: ['9p'] });
    expect(digestOf(special)).not.toBe(digestOf(text));
  });

  test.each<[string, unknown, string]>([
    ['another format', { ...whole, format: 2 }, 'its format is 2'],
    ['features that are no words', { ...whole, features: [7] }, 'its features'],
    ['features that are no list', { ...whole, features: '9p' }, 'its features'],
    ['no object', [], 'it is not a JSON object'],
    ['a name that leads elsewhere', { ...whole, name: '../x' }, 'its name'],
    [
      'a file that leads elsewhere',
      { ...whole, files: { ...whole.files, disk: { ...file, name: '../disk' } } },
      'it does not name',
    ],
    [
      'a file with the name of a manifest',
      { ...whole, files: { ...whole.files, disk: { ...file, name: 'manifest.json' } } },
      'it does not name',
    ],
    ['a short sum', { ...whole, files: { ...whole.files, disk: { ...file, sha256: 'aa' } } }, 'it does not name'],
    ['no files', { ...whole, files: {} }, 'it does not name'],
    ['no size', { ...whole, rootBytes: 0 }, 'it has no size'],
  ])('is refused with %s', (_, value, problem) => {
    const read = parseManifest(JSON.stringify(value));
    expect('problem' in read && read.problem).toContain(problem);
  });
});
