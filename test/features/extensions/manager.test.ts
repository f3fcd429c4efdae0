import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ImageStore } from '../../../src/drivers/driver.ts';
import { RdError } from '../../../src/errors.ts';
import type { ExtensionsInput } from '../../../src/features/extensions/contract.ts';
import { extensionDirectory, idOf } from '../../../src/features/extensions/directory.ts';
import { openExtensions } from '../../../src/features/extensions/manager.ts';
import { packed } from '../../helpers/tar.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

type Files = Record<string, string>;
const GOOD: Files = { '/metadata.json': '{"icon":"/icon.svg"}', '/icon.svg': '<svg/>' };

async function* archiveOf(name: string, text: string): AsyncGenerator<Uint8Array, void> {
  yield await packed([{ name, text }]);
}

/** Extensions from images that the test provides, by full reference. */
async function world(
  images: Record<string, Files>,
  more: Partial<ExtensionsInput> & { root?: string; installed?: Record<string, string> } = {},
) {
  const { root = join(temporaryDirectory(), 'extensions'), installed: first = {}, ...rest } = more;
  const state = {
    installed: first,
    allowed: { enabled: false, list: [] as string[] },
    records: 0,
    pulled: [] as string[],
  };
  const store: ImageStore = {
    has: async () => false,
    async pull(reference) {
      state.pulled.push(reference);
      if (!images[reference]) throw new RdError('ERR_NOT_FOUND', `no ${reference}`);
    },
    tags: async () => [],
    offeredTags: async () => [],
    open: (reference, _signal, look) =>
      look({
        labels: {},
        archive: async (path) => {
          const text = images[reference]?.[path];
          return text === undefined ? undefined : archiveOf(path.slice(path.lastIndexOf('/') + 1), text);
        },
      }),
  };
  const input: ExtensionsInput = {
    files: extensionDirectory(root),
    platform: 'linux',
    engine: () => ({ name: 'fake', images: store }),
    settings: () => state,
    lockedBy: () => undefined,
    async record(change) {
      state.records += 1;
      state.installed = change({ ...state.installed });
    },
    fetch: () => Promise.reject(new Error('nobody is asked')),
    log: () => undefined,
    ...rest,
  };
  return { extensions: await openExtensions(input), state, root, store };
}

const ONE = 'docker.io/org/one:1';

describe('when an engine starts', () => {
  test('installs what the settings name and the disk lacks', async () => {
    const { extensions, state } = await world({ [ONE]: GOOD }, { installed: { 'org/one': '1' } });
    expect(extensions.ready).toBe(false);
    extensions.engineIsUp();
    await extensions.idle();
    expect(Object.keys(await extensions.list())).toEqual(['org/one']);
    expect(state.installed).toEqual({ 'org/one': '1' });
  });

  test('restores damaged files, when the engine starts or on request', async () => {
    const { extensions, root } = await world({ [ONE]: GOOD }, { installed: { 'org/one': '1' } });
    const damage = () => writeFileSync(join(root, idOf('org/one'), 'metadata.json'), '{x');
    for (const mend of [() => extensions.engineIsUp(), () => extensions.install('org/one:1')]) {
      extensions.engineIsUp();
      await extensions.idle();
      damage();
      expect(await extensions.list()).toEqual({});
      await mend();
      await extensions.idle();
      expect(Object.keys(await extensions.list())).toEqual(['org/one']);
    }
  });

  test('keeps the entry of an unreachable extension, and removes that of a broken one', async () => {
    const images = { 'docker.io/org/broken:1': { '/metadata.json': '{}' } };
    const installed = { 'org/away': '1', 'org/broken': '1' };
    const { extensions, state } = await world(images, { installed });
    extensions.engineIsUp();
    await extensions.idle();
    expect(state.installed).toEqual({ 'org/away': '1' });
    expect(await extensions.list()).toEqual({});
  });

  test('keeps all locked entries', async () => {
    const locked = { installed: { 'org/broken': '1' }, lockedBy: () => 'a policy' };
    const { extensions, state } = await world({ 'docker.io/org/broken:1': { '/metadata.json': '{}' } }, locked);
    extensions.engineIsUp();
    await extensions.idle();
    expect(state.installed).toEqual({ 'org/broken': '1' });
    await expect(extensions.uninstall('org/broken')).rejects.toMatchObject({ code: 'ERR_SETTING_LOCKED' });
  });

  test('removes what the list no longer allows, and does not fetch what it never allowed', async () => {
    const { extensions, state } = await world({ [ONE]: GOOD }, { installed: { 'org/one': '1', 'org/two': '1' } });
    extensions.engineIsUp();
    await extensions.idle();
    state.allowed = { enabled: true, list: ['other/'] };
    state.pulled = [];
    extensions.engineIsUp();
    await extensions.idle();
    expect([state.installed, state.pulled, await extensions.list()]).toEqual([{}, [], {}]);
  });

  test('does nothing twice', async () => {
    const { extensions, state } = await world({ [ONE]: GOOD }, { installed: { 'org/one': '1' } });
    extensions.engineIsUp();
    await extensions.idle();
    const { records } = state;
    extensions.engineIsUp();
    await extensions.idle();
    expect([state.records, state.pulled]).toEqual([records, [ONE]]);
  });
});

describe('after the service was killed', () => {
  test('between files and settings of an installation, the settings name it', async () => {
    const first = await world({ [ONE]: GOOD }, { record: () => Promise.reject(new RdError('ERR_IO', 'killed here')) });
    first.extensions.engineIsUp();
    await expect(first.extensions.install('org/one:1')).rejects.toMatchObject({ code: 'ERR_INTERNAL' });
    const { state, extensions } = await world({}, { root: first.root });
    expect(state.installed).toEqual({ 'org/one': '1' });
    expect(Object.keys(await extensions.list())).toEqual(['org/one']);
  });

  test('between files and settings of a removal, the removal is completed', async () => {
    const first = await world({ [ONE]: GOOD });
    first.extensions.engineIsUp();
    await first.extensions.install('org/one:1');
    await extensionDirectory(first.root).remove('org/one');
    const { state } = await world({}, { root: first.root, installed: { 'org/one': '1', 'org/two': '2' } });
    expect(state.installed).toEqual({ 'org/two': '2' });
    expect(readdirSync(first.root)).toEqual([]);
  });
});

test('closing the service cancels an installation, and keeps what was there', async () => {
  const { extensions, store, root, state } = await world({ [ONE]: GOOD });
  extensions.engineIsUp();
  await extensions.install('org/one:1');
  let begun = () => {};
  const pulling = new Promise<void>((resolve) => {
    begun = resolve;
  });
  store.pull = (_reference, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new RdError('ERR_CANCELLED', 'called off')));
      begun();
    });
  const upgrade = extensions.install('org/one:2');
  const waiting = extensions.install('org/other:1');
  const outcomes = Promise.allSettled([upgrade, waiting]);
  await pulling;
  await extensions.close();
  for (const outcome of await outcomes) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ERR_NOT_READY' } });
  }
  expect(state.installed).toEqual({ 'org/one': '1' });
  expect(readdirSync(root)).toHaveLength(1);
});

test('a file in place of the directory is reported', async () => {
  const root = join(temporaryDirectory(), 'extensions');
  writeFileSync(root, 'a file where the directory belongs');
  await expect(world({}, { root })).rejects.toMatchObject({ code: 'ERR_IO' });
  expect(existsSync(root)).toBe(true);
});

test('runs no program of an image, and puts no file of it elsewhere', async () => {
  const place = temporaryDirectory();
  const marker = join(place, 'it-ran');
  const script = { linux: ['one', marker] };
  const host = {
    binaries: [{ linux: [{ path: '/host/one' }] }],
    ...{ 'x-rd-install': script, 'x-rd-uninstall': script, 'x-rd-shutdown': script },
  };
  const files: Files = {
    ...GOOD,
    '/metadata.json': JSON.stringify({ icon: '/icon.svg', host }),
    '/host/one': `#!/bin/sh\ntouch '${marker}'\n`,
  };
  const { extensions, root } = await world({ [ONE]: files }, { root: join(place, 'extensions') });
  extensions.engineIsUp();
  await extensions.idle();
  await extensions.install('org/one:1');
  const program = join(root, idOf('org/one'), 'bin', 'one');
  expect(existsSync(program)).toBe(true);
  chmodSync(program, 0o755);
  extensions.engineIsUp();
  await extensions.idle();
  await extensions.uninstall('org/one');
  await extensions.close();
  expect(existsSync(program)).toBe(false);
  expect(readdirSync(place)).toEqual(['extensions']);
});
