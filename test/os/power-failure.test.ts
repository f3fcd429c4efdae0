import { existsSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { imageStore } from '../../src/drivers/guest-images/store.ts';
import { ensureData } from '../../src/drivers/machines/qemu/disks.ts';
import { fileOperations } from '../../src/os/atomic-file.ts';
import { sampleImage } from '../drivers/guest-images/guest-image.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const done: string[] = [];
beforeEach(() => {
  done.length = 0;
  vi.spyOn(fileOperations, 'syncFile').mockImplementation(async (path) => {
    done.push(`${basename(path)} is on the disk`);
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

test('a new data disk is flushed before it is renamed, and the rename after it', async () => {
  const data = join(temporaryDirectory(), 'data.qcow2');
  vi.spyOn(fileOperations, 'syncDirectory').mockImplementation(async () => {
    done.push(existsSync(data) ? 'the name is, too' : 'too early');
  });
  await ensureData(
    {
      places: { disk: '/nowhere', data },
      async run(argv) {
        writeFileSync(String(argv.at(-2)), 'a disk');
        return { exitCode: 0, stdout: '', stderr: '' };
      },
      log: () => undefined,
      signal: new AbortController().signal,
    },
    1024,
  );
  expect(done).toEqual(['data.qcow2.new is on the disk', 'the name is, too']);
});

test('the files of a guest image are flushed before the image appears', async () => {
  vi.spyOn(fileOperations, 'rename').mockImplementation(async () => void done.push('manifest'));
  await sampleImage(imageStore(temporaryDirectory())).catch(() => undefined);
  const files = ['vmlinuz', 'initrd', 'disk.qcow2'].map((name) => `${name} is on the disk`);
  expect(done.slice(-4)).toEqual([...files, 'manifest']);
});
