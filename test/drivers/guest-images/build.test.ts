import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { extract } from 'tar-stream';
import { expect, test } from 'vitest';
import { type BuildInput, buildImage } from '../../../src/drivers/guest-images/build.ts';
import { imageStore } from '../../../src/drivers/guest-images/store.ts';
import { RdError } from '../../../src/errors.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const { signal } = new AbortController();

const PACKAGES = `containerd 1.7.24~ds1-6 ${'a'.repeat(64)}\ndocker.io 26.1.5+dfsg1-9 ${'b'.repeat(64)}\n`;

/** mmdebstrap as far as we depend on it: it reads the given files, and extracts the requested ones. */
function scripted(home: string, packages = PACKAGES) {
  const given: { name: string; mode: number | undefined; uid: number | undefined }[] = [];
  const orders: string[] = [];
  const texts = new Map<string, string>();
  const commands: (readonly string[])[] = [];
  const run: BuildInput['run'] = async (argv) => {
    commands.push(argv);
    const hooks = argv.filter((word) => word.startsWith('--customize-hook=')).map((word) => word.slice(17));
    for (const hook of hooks) {
      const [order = '', one = '', other = ''] = hook.split(/ (?=['/])/).map((word) => word.replace(/^'(.*)'$/, '$1'));
      orders.push(order.split('\n')[0] ?? '');
      if (order === 'tar-in') {
        const reader = extract();
        reader.end(readFileSync(one));
        for await (const entry of reader) {
          const { name, mode, uid } = entry.header;
          given.push({ name, mode, uid });
          // An unread one would block the next.
          texts.set(name, await text(entry));
        }
      }
      if (order === 'download') writeFileSync(other, one.endsWith('/packages') ? packages : `made ${one}`);
    }
    return { exitCode: 0, stdout: '', stderr: '' };
  };
  const store = imageStore(join(home, 'guest images'));
  return { run, store, given, orders, texts, commands };
}

test('files in the root belong to root, whoever builds and whatever the home is called', async () => {
  const home = temporaryDirectory();
  const { run, store, given, orders } = scripted(home);
  const image = await buildImage({
    store,
    run,
    architecture: 'x86_64',
    suite: 'trixie',
    kernel: 'cloud',
    asRoot: false,
    now: () => 0,
    signal,
  });
  expect(orders).toEqual(['tar-in', 'sh "$1/rdctl-finish" "$1"', 'download', 'download', 'download', 'download']);
  expect(given.map(({ uid }) => uid)).toEqual(given.map(() => 0));
  for (const name of ['usr/lib/rdctl/boot', 'usr/lib/rdctl/names']) {
    expect(given).toContainEqual({ name, mode: 0o755, uid: 0 });
  }
  expect(given.filter(({ name }) => name === 'etc/resolv.conf')).toHaveLength(1);
  expect(readFileSync(join(image.directory, image.files.disk.name), 'utf8')).toBe('made /rdctl-image/disk.qcow2');
  expect((await store.list()).map(({ digest }) => digest)).toEqual([image.digest]);
});

test('an image records the suite, the kernel and every package that it was built from', async () => {
  const { run, store } = scripted(temporaryDirectory());
  const image = await buildImage({
    store,
    run,
    architecture: 'x86_64',
    suite: 'sid',
    kernel: 'generic',
    asRoot: true,
    now: () => 0,
    signal,
  });
  expect(image).toMatchObject({
    name: 'debian-sid-generic',
    features: ['9p'],
    source: {
      suite: 'sid',
      kernel: 'generic',
      recipe: expect.stringMatching(/^[0-9a-f]{64}$/),
      packages: [
        { name: 'containerd', version: '1.7.24~ds1-6', sha256: 'a'.repeat(64) },
        { name: 'docker.io', version: '26.1.5+dfsg1-9', sha256: 'b'.repeat(64) },
      ],
    },
  });
  expect(await store.list()).toEqual([image]);
});

test('an image for another computer has its packages, kernel, console and emulators', async () => {
  const { run, store, texts, commands } = scripted(temporaryDirectory());
  const input = { store, run, suite: 'trixie', kernel: 'generic', asRoot: true, now: () => 0, signal } as const;
  const image = await buildImage({ ...input, architecture: 'aarch64' });
  expect(image).toMatchObject({ name: 'debian-13-generic-arm64', architecture: 'aarch64', features: ['9p'] });
  const [argv = []] = commands;
  expect(argv).toEqual(
    expect.arrayContaining(['--architectures=arm64', '--dpkgopt=path-include=/usr/bin/qemu-x86_64']),
  );
  expect(argv.find((word) => word.startsWith('--include='))).toMatch(/,linux-image-arm64$/);
  expect(texts.get('etc/binfmt.d/rdctl.conf')).toMatch(/^:qemu-x86_64:.*\\x3e\\x00:.*:OPF\n:qemu-arm:.*:OPF\n$/);
  expect(texts.get('rdctl-finish')).toContain('serial-getty@ttyAMA0.service');
  const own = await buildImage({ ...input, architecture: 'x86_64' });
  expect(own.source?.recipe).not.toBe(image.source?.recipe);
  expect(commands[1]?.join(' ')).not.toContain('--architectures');
});

test('a build for another computer that fails names the emulator', async () => {
  const { store } = scripted(temporaryDirectory());
  const run = () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'arm64 can neither be executed natively'));
  const input = { store, run, suite: 'trixie', kernel: 'cloud', asRoot: true, now: () => 0, signal } as const;
  await expect(buildImage({ ...input, architecture: 'aarch64' })).rejects.toMatchObject({
    advice: expect.stringContaining('qemu-user-static'),
  });
});

test('a build that cannot say what it installed keeps nothing', async () => {
  const { run, store } = scripted(temporaryDirectory(), 'docker.io 26.1.5\n');
  const build = buildImage({
    store,
    run,
    architecture: 'x86_64',
    suite: 'sid',
    kernel: 'cloud',
    asRoot: false,
    now: () => 0,
    signal,
  });
  await expect(build).rejects.toMatchObject({ message: 'the build recorded an invalid package: docker.io 26.1.5' });
  expect(await store.list()).toEqual([]);
});

test('a user without a user namespace is told how to get one, and nothing is left', async () => {
  const { store } = scripted(temporaryDirectory());
  const run = () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'mmdebstrap failed with exit status 25'));
  const build = (asRoot: boolean) =>
    buildImage({ store, run, architecture: 'x86_64', suite: 'trixie', kernel: 'cloud', asRoot, now: () => 0, signal });
  await expect(build(false)).rejects.toMatchObject({ advice: expect.stringContaining('uidmap') });
  await expect(build(true)).rejects.toMatchObject({ advice: undefined });
  expect(await store.list()).toEqual([]);
});
