import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
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

  test('remembers the selected image, also when it is gone', async () => {
    const root = temporaryDirectory();
    const store = imageStore(root);
    expect(await store.selected()).toBeUndefined();
    const image = await sampleImage(store);
    await store.select(image);
    expect(await imageStore(root).selected()).toBe(image.digest);
    await store.remove(image);
    expect(await store.selected()).toBe(image.digest);
    expect(await store.list()).toEqual([]);
    writeFileSync(join(root, 'selected.json'), '{"image": ');
    expect(await store.selected()).toBeUndefined();
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
