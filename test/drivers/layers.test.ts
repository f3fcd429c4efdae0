import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { extract } from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { readLayers } from '../../src/drivers/image-layers/layers.ts';
import { type AnyEntry, packed } from '../helpers/tar.ts';

const file = (name: string, text = name): AnyEntry => ({ name, text });
const directory = (name: string): AnyEntry => ({ name, type: 'directory' });
const link = (name: string, linkname: string): AnyEntry => ({ name, type: 'symlink', linkname });

/** An image with these layers, lowest first. */
async function image(...layers: readonly AnyEntry[][]) {
  const archives = await Promise.all(layers.map(async (entries) => gzipSync(await packed(entries))));
  return readLayers(archives.length, async function* (layer) {
    yield archives[layer] ?? Buffer.alloc(0);
  });
}

/** Names in an archive, with the text of a file or the target of a link; undefined where the image has nothing. */
async function contentOf(archive: Awaited<ReturnType<Awaited<ReturnType<typeof image>>>>) {
  if (!archive) return undefined;
  const reader = extract();
  const found: string[] = [];
  Readable.from(archive).pipe(reader);
  for await (const entry of reader) {
    let text = '';
    for await (const chunk of entry) text += String(chunk);
    const { name, type, linkname } = entry.header;
    found.push(type === 'directory' ? name : `${name} ${type === 'file' ? text : `-> ${linkname}`}`);
  }
  return found.sort();
}

test('layers are stacked, and a whiteout removes only what is below it', async () => {
  const archive = await image(
    [file('a/old', '1'), file('a/gone'), file('b/one'), file('c')],
    [file('a/old', '2'), file('a/.wh.gone', ''), file('b/two'), file('b/.wh..wh..opq', ''), file('.wh.c', '')],
  );
  expect(await contentOf(await archive('/a'))).toEqual(['a/', 'a/old 2']);
  expect(await contentOf(await archive('/b'))).toEqual(['b/', 'b/two b/two']);
  expect(await contentOf(await archive('/c'))).toBeUndefined();
});

test('links are resolved inside the image, and loops are refused', async () => {
  const archive = await image([
    file('etc/real', 'x'),
    link('usr/etc', '/etc'),
    link('up', '../../../etc/./real'),
    link('one', 'two'),
    link('two', 'one'),
    { name: 'hard', type: 'link', linkname: 'etc/real' },
  ]);
  expect(await contentOf(await archive('/usr/etc/real'))).toEqual(['real x']);
  expect(await contentOf(await archive('/up'))).toEqual(['real x']);
  expect(await contentOf(await archive('/etc/../usr/../hard'))).toEqual(['hard x']);
  expect(await contentOf(await archive('/one'))).toBeUndefined();
  expect(await contentOf(await archive('/etc/real/below'))).toBeUndefined();
});

test('many names of one file become one file with hard links', async () => {
  const more = Array.from({ length: 300 }, (_, at): AnyEntry => ({ name: `d/${at}`, type: 'link', linkname: 'd/a' }));
  const archive = await image([file('d/a', 'x'), ...more]);
  const content = (await contentOf(await archive('/d'))) ?? [];
  expect(content).toHaveLength(302);
  expect(content.filter((line) => line.includes('-> d/'))).toHaveLength(300);
});

describe('refuses what would keep the service busy for long', () => {
  const deep = (levels: number) => Array.from({ length: levels }, () => 'd').join('/');

  test.each<[string, AnyEntry[]]>([
    ['a path that is too long', [file(`${'n'.repeat(4096)}/x`, '')]],
    ['a path of many short parts', [directory(deep(40_000))]],
    ['a path within the length, but too deep', [directory(deep(300))]],
    ['a link to such a path', [link('l', deep(40_000))]],
    ['a hard link to such a path', [{ name: 'l', type: 'link', linkname: deep(40_000) }]],
  ])('%s', async (_what, entries) => {
    await expect(image(entries)).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: expect.stringMatching(/a name .*too (?:long|deep)/),
    });
  });

  test('a requested path that is too long is not found', async () => {
    const archive = await image([directory('d'), link('d/d', '.')]);
    expect(await archive(`/${deep(3)}`)).toBeDefined();
    expect(await archive(`/${deep(40_000)}`)).toBeUndefined();
  });

  test('the deepest allowed path is extracted', async () => {
    const archive = await image([directory(deep(256))]);
    expect(await contentOf(await archive('/d'))).toHaveLength(256);
  });

  test('refuses more attributes than any file has, and more layers than engines stack', async () => {
    const pax = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, 'v']));
    await expect(image([{ ...file('a'), pax }])).rejects.toThrow(/too many attributes/);
    await expect(image(...Array.from({ length: 128 }, () => [file('a')]))).rejects.toThrow(/more than 127 layers/);
  });
});
