import { readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeDirectory } from '../../src/os/directory.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test('creates what is missing, for the user alone, and can be repeated', async () => {
  const path = join(temporaryDirectory(), 'a', 'b', 'c');
  await makeDirectory(path);
  await Promise.all([makeDirectory(path), makeDirectory(path), makeDirectory(join(path, 'd', 'e'))]);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(statSync(join(path, 'd', 'e')).isDirectory()).toBe(true);
});

test('concurrent callers that lack the same parent do not conflict', async () => {
  for (let round = 0; round < 50; round += 1) {
    const path = join(temporaryDirectory(), 'a', 'b');
    const names = Array.from({ length: 8 }, (_, index) => join(path, String(index)));
    await Promise.all(names.map((name) => makeDirectory(name)));
    expect(readdirSync(path)).toHaveLength(8);
  }
});

test('reports a file in the way', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'a'), join(file, 'a', 'b')]) {
    await expect(makeDirectory(path)).rejects.toMatchObject({
      code: 'ERR_IO',
      message: `could not create the directory ${path}: ${file} is a file`,
    });
  }
});

test('reports a dangling link in the way as one', async () => {
  const link = join(temporaryDirectory(), 'link');
  symlinkSync('nowhere', link);
  for (const path of [link, join(link, 'a'), join(link, 'a', 'b')]) {
    await expect(makeDirectory(path)).rejects.toMatchObject({
      code: 'ERR_IO',
      message: `could not create the directory ${path}: ${link} is a dangling symbolic link`,
    });
  }
});

test.runIf(process.platform === 'linux')(
  'fails on a file system that accepts no new directories, without retrying forever',
  async () => {
    await expect(makeDirectory('/proc/rdctl/home/logs')).rejects.toMatchObject({
      code: 'ERR_IO',
      message: 'could not create the directory /proc/rdctl/home/logs: /proc takes no new directories',
    });
  },
);
