import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ExtensionDirectory, extensionDirectory, idOf } from '../../../src/features/extensions/directory.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const NAME = 'org/tool';

async function put(files: ExtensionDirectory, version: string): Promise<void> {
  const staged = await files.stage();
  writeFileSync(join(staged, 'version.txt'), version);
  writeFileSync(join(staged, 'metadata.json'), '{"icon":"i"}');
  writeFileSync(join(staged, 'labels.json'), '{}');
  await files.commit(NAME, staged);
}

function setUp() {
  const root = join(temporaryDirectory(), 'extensions');
  const files = extensionDirectory(root);
  const forgotten: string[] = [];
  const recover = () => files.recover(async (names) => void forgotten.push(...names));
  return { root, files, forgotten, recover };
}

test('the list is empty before the first extension', async () => {
  const { files, recover } = setUp();
  await recover();
  expect([...(await files.versions())]).toEqual([]);
});

test('a version replaces another one, and is removed atomically', async () => {
  const { root, files } = setUp();
  await put(files, '1');
  await put(files, '2');
  expect([...(await files.versions())]).toEqual([[NAME, '2']]);
  expect(await files.read(NAME)).toEqual({ version: '2', metadata: { icon: 'i', vm: {} }, labels: {} });
  const deleteFiles = await files.remove(NAME);
  expect([...(await files.versions())]).toEqual([]);
  await deleteFiles();
  expect(readdirSync(root)).toEqual([]);
});

test('killed between the two renames of an upgrade: the old version is back', async () => {
  const { root, files, recover } = setUp();
  await put(files, '1');
  mkdirSync(join(root, '.staged-abc'));
  renameSync(join(root, idOf(NAME)), join(root, `.old-${idOf(NAME)}`));
  await recover();
  expect([...(await files.versions())]).toEqual([[NAME, '1']]);
  expect(readdirSync(root)).toEqual([idOf(NAME)]);
});

test('killed after both renames: the new version stays, and leftovers are removed', async () => {
  const { root, files, recover } = setUp();
  await put(files, '2');
  mkdirSync(join(root, `.old-${idOf(NAME)}`));
  await recover();
  expect([...(await files.versions())]).toEqual([[NAME, '2']]);
  expect(readdirSync(root)).toEqual([idOf(NAME)]);
});

test('killed after a removal was recorded: it is completed, and the settings change before the files', async () => {
  const { root, files, forgotten, recover } = setUp();
  await put(files, '1');
  await files.remove(NAME);
  await expect(files.recover(() => Promise.reject(new Error('the disk is full')))).rejects.toThrow('the disk is full');
  await recover();
  expect(forgotten).toEqual([NAME]);
  expect(readdirSync(root)).toEqual([]);
});

test('foreign files are left alone and not listed', async () => {
  const { root, files, recover } = setUp();
  await put(files, '1');
  for (const name of ['README', 'bm90IGEgbmFtZQ', '..hidden']) mkdirSync(join(root, name));
  await recover();
  expect([...(await files.versions()).keys()]).toEqual([NAME]);
  expect(readdirSync(root)).toHaveLength(4);
});
