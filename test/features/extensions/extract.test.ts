import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { extract, fullBudget, readFileOf } from '../../../src/features/extensions/extract.ts';
import { type AnyEntry, packed } from '../../helpers/tar.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

async function* archive(entries: readonly AnyEntry[]): AsyncGenerator<Uint8Array, void> {
  yield await packed(entries);
}

const DIRECTORY: AnyEntry = { name: 'top/', type: 'directory' };
const file = (name: string, text = 'x', mode = 0o644): AnyEntry => ({ name, text, mode });
const link = (name: string, linkname: string): AnyEntry => ({ name, type: 'symlink', linkname });

test('a directory becomes the destination with modes, links and hard links', async () => {
  const to = join(temporaryDirectory(), 'out');
  const kind = await extract(
    archive([
      DIRECTORY,
      file('top/a.txt', 'a'),
      file('top/bin/run', '#!', 0o4755),
      link('top/sub/up', '../a.txt'),
      link('top/here', 'a.txt'),
      { name: 'top/hard', type: 'link', linkname: 'top/a.txt' },
    ]),
    to,
    fullBudget(),
  );
  expect(kind).toBe('directory');
  expect(readdirSync(to).sort()).toEqual(['a.txt', 'bin', 'hard', 'here', 'sub']);
  expect(statSync(join(to, 'bin/run')).mode & 0o7777).toBe(0o755);
  expect(statSync(join(to, 'a.txt')).mode & 0o111).toBe(0);
  expect(readlinkSync(join(to, 'sub/up'))).toBe('../a.txt');
  expect(readFileSync(join(to, 'sub/up'), 'utf8')).toBe('a');
  expect(readFileSync(join(to, 'hard'), 'utf8')).toBe('a');
});

test('a file becomes the destination', async () => {
  const to = join(temporaryDirectory(), 'icon.svg');
  expect(await extract(archive([file('whatever.svg', '<svg/>')]), to, fullBudget())).toBe('file');
  expect(readFileSync(to, 'utf8')).toBe('<svg/>');
});

describe('attacks', () => {
  test.each<[string, AnyEntry[], RegExp]>([
    ['a name that leads up', [DIRECTORY, file('top/../../evil')], /not a path below a directory/],
    ['an absolute name', [DIRECTORY, file('/etc/evil')], /not a path below a directory/],
    ['a backslash', [DIRECTORY, file('top/..\\evil')], /not a path below a directory/],
    ['a link out of the tree', [DIRECTORY, link('top/l', '../evil')], /leaves the tree/],
    ['an absolute link', [DIRECTORY, link('top/l', '/etc/passwd')], /leaves the tree/],
    [
      'a link that goes up after a name',
      [DIRECTORY, link('top/a', '.'), link('top/b', 'a/../../evil')],
      /leaves the tree/,
    ],
    ['an empty link', [DIRECTORY, link('top/l', '')], /leaves the tree/],
    ['a file through a link', [DIRECTORY, link('top/l', 'd'), file('top/l/evil')], /in the archive twice|below a file/],
    ['a link in the place of a file', [DIRECTORY, file('top/l'), link('top/l', 'x')], /in the archive twice/],
    ['a file twice', [DIRECTORY, file('top/a', '1'), file('top/a', '2')], /in the archive twice/],
    ['a file below a file', [DIRECTORY, file('top/a'), file('top/a/b')], /below a file|in the archive twice/],
    ['a name that no file system takes', [DIRECTORY, file(`top/${'x'.repeat(300)}`)], /its name is too long/],
    ['a link target that no file system takes', [DIRECTORY, link('top/l', 'x'.repeat(5000))], /its name is too long/],
    ['a hard link out of the tree', [DIRECTORY, { name: 'top/h', type: 'link', linkname: '/etc/passwd' }], /./],
    ['a hard link to nothing', [DIRECTORY, { name: 'top/h', type: 'link', linkname: 'top/none' }], /hard link/],
    ['a device', [DIRECTORY, { name: 'top/d', type: 'character-device' }], /character-device/],
    ['a pipe', [DIRECTORY, { name: 'top/p', type: 'fifo' }], /fifo/],
    ['a link alone', [link('top', '/etc/passwd')], /it is a link/],
    ['more below a file', [file('top'), file('top/x')], /below a file/],
    [
      'more attributes than any file has',
      [{ ...file('top'), pax: Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, 'v'])) }],
      /too many attributes/,
    ],
    ['nothing', [], /empty/],
  ])('%s', async (_what, entries, message) => {
    const root = temporaryDirectory();
    const to = join(root, 'deep', 'out');
    mkdirSync(join(root, 'deep'));
    await expect(extract(archive(entries), to, fullBudget())).rejects.toMatchObject({
      code: 'ERR_EXTENSION_INVALID',
      message: expect.stringMatching(message),
    });
    expect(existsSync(join(root, 'evil')) || existsSync(join(root, 'deep', 'evil')) || existsSync('/etc/evil')).toBe(
      false,
    );
  });

  test('links are created last, so nothing is written through them', async () => {
    const root = temporaryDirectory();
    const to = join(root, 'out');
    await extract(archive([DIRECTORY, link('top/l', 'real'), file('top/real/a')]), to, fullBudget());
    expect(lstatSync(join(to, 'l')).isSymbolicLink()).toBe(true);
  });

  test('refuses more than the limits', async () => {
    const big = archive([DIRECTORY, file('top/a', 'x'.repeat(100)), file('top/b', 'x'.repeat(100))]);
    await expect(extract(big, join(temporaryDirectory(), 'o'), { bytes: 150, entries: 10 })).rejects.toThrow(
      /too large/,
    );
    const many = archive([DIRECTORY, file('top/a'), file('top/b')]);
    await expect(extract(many, join(temporaryDirectory(), 'o'), { bytes: 150, entries: 2 })).rejects.toThrow(
      /too many/,
    );
  });

  test('hard links count with the size of their target', async () => {
    const linked = () =>
      archive([
        DIRECTORY,
        file('top/a', 'x'.repeat(100)),
        { name: 'top/b', type: 'link', linkname: 'top/a' },
        { name: 'top/c', type: 'link', linkname: 'top/b' },
      ]);
    const budget = { bytes: 300, entries: 10 };
    await extract(linked(), join(temporaryDirectory(), 'o'), budget);
    expect(budget.bytes).toBe(0);
    await expect(extract(linked(), join(temporaryDirectory(), 'o'), { bytes: 299, entries: 10 })).rejects.toThrow(
      /"top\/c" .*too large/,
    );
  });

  test('reports a truncated archive, and a file that is not one', async () => {
    async function* cut() {
      const chunks: Uint8Array[] = [];
      for await (const chunk of archive([DIRECTORY, file('top/a', 'x'.repeat(5000))])) chunks.push(chunk);
      yield Buffer.concat(chunks).subarray(0, 3000);
    }
    for (const broken of [cut(), archiveOfNoise()]) {
      await expect(extract(broken, join(temporaryDirectory(), 'o'), fullBudget())).rejects.toMatchObject({
        code: 'ERR_EXTENSION_INVALID',
      });
    }
    async function* archiveOfNoise() {
      yield Buffer.alloc(2048, 'noise ');
    }
  });
});

test('a single file is read up to a limit', async () => {
  expect(String(await readFileOf(archive([file('metadata.json', '{}')]), 10))).toBe('{}');
  await expect(readFileOf(archive([file('metadata.json', 'x'.repeat(11))]), 10)).rejects.toThrow(/larger than 10/);
  await expect(readFileOf(archive([link('metadata.json', '/etc/passwd')]), 10)).rejects.toThrow(/plain file/);
  await expect(readFileOf(archive([]), 10)).rejects.toThrow(/empty/);
});
