import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMPLETE, METADATA } from '../../src/features/snapshots/catalogue.ts';
import {
  contentsOf,
  formatManifest,
  markOf,
  type SavedPart,
  savedNames,
} from '../../src/features/snapshots/manifest.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const { signal } = new AbortController();
/** With the consent to one from elsewhere, what it holds is checked all the same. */
const RESTORE = '/v1/snapshot/restore?name=one&foreign=true';

/** A service with one snapshot, a foreign directory, and a function that writes a matching manifest. */
async function scene() {
  const service = await startService({ settings: { containerEngine: { name: 'moby' } }, power: 'started' });
  const { here, client, converged } = service;
  await converged();
  const call = async (method: string, path: string, body?: object) => {
    const { status, body: answer } = await client.request({
      method,
      path,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status, text: answer.toString() };
  };
  expect((await call('POST', '/v1/snapshots', { name: 'one' })).status).toBe(200);
  await converged();
  const [id = ''] = readdirSync(here.snapshots).filter((name) => !name.startsWith('.'));
  const directory = join(here.snapshots, id);
  const outside = temporaryDirectory();
  writeFileSync(join(outside, 'machine.json'), readFileSync(join(here.state, 'drivers', 'simulated', 'machine.json')));
  const manifest = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8'));
  return {
    ...service,
    call,
    directory,
    outside,
    /** The saved name of the only part. */
    saved: String(manifest.parts[0].saved),
    name: String(manifest.parts[0].name),
    async rewrite(parts: unknown, contents?: object): Promise<void> {
      const names = savedNames(parts as SavedPart[]);
      const all = contents ?? (await contentsOf(directory, names, signal).catch(() => ({})));
      const text = formatManifest({ ...manifest, parts, contents: all });
      writeFileSync(join(directory, 'manifest.json'), text);
      writeFileSync(join(directory, COMPLETE), markOf(text));
    },
  };
}

const ABSOLUTE = (outside: string) => outside;
const UPWARDS = (outside: string) => `../../../../../../../../../../../..${outside}`;

test.each<[string, (outside: string) => unknown]>([
  ['an absolute path', ABSOLUTE],
  ['a path that leads up', UPWARDS],
  ['a name that is the directory itself', () => '.'],
  ['the directory above', () => '..'],
  ['a path with a slash', () => 'settings.json/x'],
  ['an empty name', () => ''],
  ['a name with a NUL', () => 'a\0b'],
  ['a number', () => 7],
  ['the settings', () => 'settings.json'],
])('a snapshot whose manifest lists %s as saved is not restored', async (_what, saved) => {
  const { call, client, converged, directory, outside, here, rewrite, name } = await scene();
  await rewrite([{ name, saved: saved(outside) }]);
  const model = join(here.state, 'drivers', 'simulated', 'machine.json');
  const before = readFileSync(model, 'utf8');
  const generation = (await client.status()).generation;
  expect(await call('POST', RESTORE)).toEqual({
    status: 400,
    text: expect.stringMatching(/^failed to restore snapshot "one": the snapshot is damaged: manifest\.json /),
  });
  expect((await converged()).generation).toBe(generation);
  expect(readFileSync(model, 'utf8')).toBe(before);
  expect((await call('DELETE', '/v1/snapshots?name=one')).status).toBe(200);
  expect(existsSync(directory)).toBe(false);
  expect(readdirSync(outside)).toEqual(['machine.json']);
});

test('a snapshot whose saved part is a link to elsewhere is not restored, and deleting it deletes nothing there', async () => {
  const { call, directory, outside, saved, name, rewrite } = await scene();
  rmSync(join(directory, saved), { recursive: true });
  symlinkSync(outside, join(directory, saved));
  await rewrite([{ name, saved }]);
  expect(await call('POST', RESTORE)).toEqual({
    status: 400,
    text: expect.stringContaining(`"${saved}" is a link`),
  });
  expect((await call('DELETE', '/v1/snapshots?name=one')).status).toBe(200);
  expect(readdirSync(outside)).toEqual(['machine.json']);
});

test.each<[string, unknown[], object]>([
  ['a part that is no object', [1], {}],
  [
    'the same place twice',
    [
      { name: 'simulated', saved: 'a' },
      { name: 'other', saved: 'a' },
    ],
    {},
  ],
  ['a file of no kind', [], { 'settings.json': 1 }],
  ['a file outside of what was saved', [], { '../x': { kind: 'directory' } }],
])('a manifest with %s counts as damaged', async (_what, parts, contents) => {
  const { call, rewrite } = await scene();
  await rewrite(parts, contents);
  expect(await call('POST', RESTORE)).toEqual({
    status: 400,
    text: expect.stringMatching(/^failed to restore snapshot "one": the snapshot is damaged: /),
  });
});

test.each([METADATA, COMPLETE, 'manifest.json'])(
  'a snapshot whose %s is a FIFO or a link blocks nothing',
  async (name) => {
    const { call, directory, outside, here } = await scene();
    const other = join(here.snapshots, '00000000-0000-4000-8000-000000000000');
    for (const make of [
      (path: string) => execFileSync('mkfifo', [path]),
      (path: string) => symlinkSync('/dev/zero', path),
      (path: string) => symlinkSync(join(outside, 'machine.json'), path),
    ]) {
      rmSync(other, { recursive: true, force: true });
      cpSync(directory, other, { recursive: true });
      writeFileSync(join(other, 'metadata.json'), JSON.stringify({ created: '2030-01-01T00:00:00Z', name: 'two' }));
      rmSync(join(other, name));
      make(join(other, name));
      const list = await call('GET', '/v1/snapshots');
      expect(list.status).toBe(200);
      expect((await call('POST', '/v1/snapshot/restore?name=two')).status).toBe(400);
    }
  },
);
