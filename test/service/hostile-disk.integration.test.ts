import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { ARCHITECTURES, guestArchitecture } from '../../src/drivers/guest-images/architecture.ts';
import { imageStore } from '../../src/drivers/guest-images/store.ts';
import { COMPLETE } from '../../src/features/snapshots/catalogue.ts';
import { contentsOf, formatManifest, markOf, savedNames } from '../../src/features/snapshots/manifest.ts';
import { sampleImage } from '../drivers/guest-images/guest-image.ts';
import { diskHeader } from '../helpers/disk-header.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const { signal } = new AbortController();
const DATA = Buffer.concat([diskHeader(), Buffer.from('of now')]);

/** A service with a virtual machine that is off and one snapshot of it. Its programs only note that they were started. */
async function scene() {
  const home = temporaryDirectory();
  const bin = join(home, 'programs');
  const calls = join(home, 'calls');
  const architecture = guestArchitecture(process.arch) ?? 'x86_64';
  mkdirSync(bin);
  for (const name of [ARCHITECTURES[architecture].qemu.program, 'qemu-img', 'ssh', 'ssh-keygen']) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> '${calls}'\n`, { mode: 0o755 });
  }
  await sampleImage(imageStore(join(home, 'guest-images')), 'a', undefined, architecture);
  const service = await startService({
    home,
    driver: 'qemu',
    power: 'stopped',
    // Confined programs could not note anything in the home.
    env: { PATH: `${bin}:${process.env.PATH}`, RDCTL_QEMU_CONFINE: '0' },
  });
  const { here, client, converged } = service;
  await converged();
  const directory = join(here.state, 'drivers', 'qemu');
  const data = join(directory, 'data.qcow2');
  writeFileSync(data, DATA);
  const call = async (path: string, body?: object) => {
    const { status, body: answer } = await client.request({
      method: 'POST',
      path,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status, text: answer.toString() };
  };
  expect(await call('/v1/snapshots', { name: 'one' })).toMatchObject({ status: 200 });
  await converged();
  const [id = ''] = readdirSync(here.snapshots).filter((name) => !name.startsWith('.'));
  const snapshot = join(here.snapshots, id);
  const manifest = JSON.parse(readFileSync(join(snapshot, 'manifest.json'), 'utf8'));
  return {
    ...service,
    data,
    directory,
    parts: manifest.parts,
    /** What the snapshot has of the data disk. */
    saved: join(snapshot, '0-data.qcow2'),
    /** The programs that were started since the last call. */
    started() {
      const text = existsSync(calls) ? readFileSync(calls, 'utf8') : '';
      rmSync(calls, { force: true });
      return text.split('\n').filter(Boolean);
    },
    /** Its header and its parts are checked whoever made it. */
    restore: () => call('/v1/snapshot/restore?name=one&foreign=true'),
    /** Makes the manifest match what is there. */
    async rewrite(parts = manifest.parts) {
      const contents = await contentsOf(snapshot, savedNames(parts), signal);
      const text = formatManifest({ ...manifest, parts, contents });
      writeFileSync(join(snapshot, 'manifest.json'), text);
      writeFileSync(join(snapshot, COMPLETE), markOf(text));
    },
  };
}

const victim = '/etc/passwd';

test.each<[string, (path: string) => void, string]>([
  [
    'has a backing file',
    (path) => writeFileSync(path, diskHeader({ backing: victim })),
    'its header names a backing file',
  ],
  [
    'has a data file',
    (path) => writeFileSync(path, diskHeader({ features: 4n, extensions: [[0x44415441, victim]] })),
    'its header names an external data file',
  ],
  ['is encrypted', (path) => writeFileSync(path, diskHeader({ encryption: 1 })), 'it is encrypted'],
])('a snapshot whose disk %s is not restored, and no program opens it', async (_what, make, why) => {
  const { data, directory, saved, started, restore, rewrite, converged, client } = await scene();
  expect(started()).toEqual([expect.stringMatching(/^qemu-img check /)]);
  expect(await restore()).toMatchObject({ status: 200 });
  expect(started()).toEqual([expect.stringMatching(/^qemu-img check /)]);
  const { generation } = await client.status();
  const before = readdirSync(directory);
  rmSync(saved);
  make(saved);
  await rewrite();
  expect(await restore()).toEqual({
    status: 400,
    text: expect.stringMatching(
      new RegExp(`^failed to restore snapshot "one": the data disk .* was not made by rdctl: ${why}`),
    ),
  });
  expect((await converged()).generation).toBe(generation);
  expect(started()).toEqual([]);
  expect(readFileSync(data)).toEqual(DATA);
  expect(readdirSync(directory)).toEqual(before);
});

test.each<[string, (path: string) => void]>([
  ['a FIFO', (path) => execFileSync('mkfifo', [path])],
  ['a directory', (path) => mkdirSync(path)],
])('a snapshot with %s in place of its disk or its settings is not restored', async (_what, make) => {
  const { data, saved, started, restore, rewrite } = await scene();
  started();
  for (const path of [saved, join(dirname(saved), 'settings.json')]) {
    rmSync(path);
    make(path);
    await rewrite();
    expect(await restore()).toEqual({
      status: 400,
      text: `failed to restore snapshot "one": the snapshot is damaged: "${basename(path)}" is not a file`,
    });
    rmSync(path, { recursive: true });
    writeFileSync(path, path === saved ? DATA : '{}');
  }
  expect(started()).toEqual([]);
  expect(readFileSync(data)).toEqual(DATA);
});

test('a snapshot whose other part is too large to be read is not restored', async () => {
  const { directory, saved, restore, rewrite, parts } = await scene();
  const memo = join(dirname(saved), '1-k3s-release');
  writeFileSync(memo, 'x'.repeat(5000));
  await rewrite([parts[0], { name: 'k3s-release', saved: '1-k3s-release' }]);
  expect(await restore()).toMatchObject({ status: 400, text: expect.stringContaining('is larger than 4096 bytes') });
  expect(existsSync(join(directory, 'k3s-release'))).toBe(false);
});
