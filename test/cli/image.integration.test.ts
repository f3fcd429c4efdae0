import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { imageStore } from '../../src/drivers/guest-images/store.ts';
import { sampleImage } from '../drivers/guest-images/guest-image.ts';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

async function home() {
  const directory = temporaryDirectory();
  const image = await sampleImage(imageStore(join(directory, 'guest-images')));
  return { env: { RDCTL_HOME: directory }, directory, image };
}

test('list shows the images', async () => {
  const { env, image } = await home();
  const { exit, out, err } = await rdctl(['image', 'list'], { env });
  expect({ exit, err }).toEqual({ exit: 0, err: '' });
  expect(out).toBe(
    `DIGEST        NAME      ARCHITECTURE  CREATED (UTC)     SIZE      MACHINE\n${image.digest.slice(7, 19)}  debian-a  x86_64        2026-11-01 12:00  31.3 KiB  next start\n`,
  );
  const json = await rdctl(['image', 'list', '-o', 'json'], { env });
  expect(JSON.parse(json.out)).toEqual([
    {
      digest: image.digest,
      name: 'debian-a',
      architecture: 'x86_64',
      created: '2026-11-01T12:00:00.000Z',
      features: [],
      bytes: 32_000,
      directory: image.directory,
      current: false,
      next: true,
    },
  ]);
});

/** A `mmdebstrap` in the PATH that creates what it is asked to download. */
function installMmdebstrap(directory: string, packages: string): void {
  const bin = join(directory, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'packages'), packages);
  const script = `#!/bin/sh
for word; do
  case $word in
  --customize-hook=download*) eval "set -- \${word#*=}"; cp '${bin}/packages' "$3" ;;
  esac
done
`;
  writeFileSync(join(bin, 'mmdebstrap'), script, { mode: 0o755 });
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
}

test('upgrade builds a current image for the next start, and use goes back to the old one', async () => {
  const { env, directory, image } = await home();
  const driver = join(directory, 'state', 'drivers', 'qemu');
  mkdirSync(driver, { recursive: true });
  writeFileSync(join(driver, 'machine.json'), JSON.stringify({ power: 'on', image: image.digest }));
  installMmdebstrap(
    directory,
    `docker.io 26.1.5+dfsg1-9 ${'a'.repeat(64)}\nlinux-image-6.12-cloud-amd64 6.12.1 ${'b'.repeat(64)}\n`,
  );
  const old = image.digest.slice(7, 19);
  const uses = async () => {
    const list = JSON.parse((await rdctl(['image', 'list', '-o', 'json'], { env })).out);
    return Object.fromEntries(
      list.map(({ name, current, next }: Record<string, unknown>) => [name, { current, next }]),
    );
  };

  const upgraded = await rdctl(['image', 'upgrade'], { env });
  expect(upgraded.err).toBe(
    [
      'installing packages …',
      'checking …',
      '  docker.io 26.1.5+dfsg1-9',
      '  linux 6.12.1',
      `To go back, run \`rdctl image use ${old}\`.`,
      'The machine boots it at its next start: `rdctl shutdown`, then `rdctl start`.',
      '',
    ].join('\n'),
  );
  expect(upgraded).toMatchObject({ exit: 0, out: expect.stringMatching(/^[0-9a-f]{12} {2}debian-13 {2}/) });
  expect(await uses()).toEqual({
    'debian-13': { current: false, next: true },
    'debian-a': { current: true, next: false },
  });
  const shown = await rdctl(['image', 'show', 'debian-13'], { env });
  expect(shown.out).toContain(
    'Source        Debian trixie, cloud kernel, 2 packages\n  docker.io   26.1.5+dfsg1-9\n  linux       6.12.1\n',
  );
  expect((await rdctl(['image', 'show', 'debian-a'], { env })).out).toMatch(
    /^Architecture {2}x86_64$\n^Created .*\n^Size .*\n^Machine {7}until restart$\n^Source {8}not recorded$/m,
  );
  expect((await rdctl(['image', 'remove', 'debian-13'], { env })).err).toContain('debian-13; nothing was removed');

  const again = await rdctl(['image', 'upgrade'], { env });
  expect(again.err).toContain('debian-13 is current: nothing to upgrade.\n');
  expect(again.out).toBe(upgraded.out);
  expect(await uses()).toHaveProperty('debian-13', { current: false, next: true });

  const back = await rdctl(['image', 'use', old], { env });
  expect(back).toEqual({ exit: 0, out: '', err: `Selected ${old} debian-a.\n` });
  expect(await uses()).toEqual({
    'debian-13': { current: false, next: false },
    'debian-a': { current: true, next: true },
  });
});

test('an image of another architecture is listed, and neither selected nor booted', async () => {
  const { env, directory, image } = await home();
  installMmdebstrap(directory, `docker.io 26.1.5+dfsg1-9 ${'a'.repeat(64)}\n`);
  const built = await rdctl(['image', 'build', '--arch', 'arm64', '-o', 'json'], { env });
  expect(JSON.parse(built.out)).toMatchObject({ name: 'debian-13-arm64', architecture: 'aarch64' });
  expect((await rdctl(['image', 'list'], { env })).out).toMatch(/^\w{12} {2}debian-13-arm64 {2}aarch64 /m);
  expect(await rdctl(['image', 'use', 'debian-13-arm64'], { env })).toMatchObject({
    exit: 1,
    err: expect.stringContaining(
      'the guest image debian-13-arm64 is for aarch64, and machines on this computer are x86_64',
    ),
  });
  const list = JSON.parse((await rdctl(['image', 'list', '-o', 'json'], { env })).out);
  expect(list.filter(({ next }: { next: boolean }) => next)).toMatchObject([{ digest: image.digest }]);
});

test('what save wrote is fetched as the same image in another home', async () => {
  const { env, directory, image } = await home();
  const file = join(directory, 'image.tar');
  const saved = await rdctl(['image', 'save', 'debian-a', '--out-file', file], { env });
  expect(saved).toMatchObject({ exit: 0, err: '', out: expect.stringMatching(/^sha256:[0-9a-f]{64}\n$/) });
  const server = createServer((_, response) => response.end(readFileSync(file)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/image.tar`;
  const other = { RDCTL_HOME: temporaryDirectory() };
  const fetched = await rdctl(['image', 'fetch', url, '--sha256', saved.out.trim()], { env: other });
  expect(fetched).toMatchObject({ exit: 0, err: '', out: `${image.digest.slice(7, 19)}  debian-a  31.3 KiB\n` });
  const listed = JSON.parse((await rdctl(['image', 'list', '-o', 'json'], { env: other })).out);
  expect(listed).toMatchObject([{ digest: image.digest }]);

  const wrong = await rdctl(['image', 'fetch', url, '--sha256', 'b'.repeat(64)], {
    env: { RDCTL_HOME: temporaryDirectory() },
  });
  expect(wrong).toMatchObject({ exit: 1, out: '', err: expect.stringContaining('is not the expected file') });
});

test('fetch reports the address of what is not an image, and keeps nothing of it', async () => {
  const body = 'no archive';
  const server = createServer((_, response) => response.end(body));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/image.tar`;
  const home = temporaryDirectory();
  const sum = createHash('sha256').update(body).digest('hex');
  const { exit, err } = await rdctl(['image', 'fetch', url, '--sha256', sum], { env: { RDCTL_HOME: home } });
  expect(exit).toBe(1);
  expect(err).toContain(`Error: ${url} is not a guest image: it is damaged or not a tar archive\n`);
  expect(readdirSync(join(home, 'cache', 'downloads'))).toEqual([]);
});

test('a digest that is too short is distinguished from an unknown one', async () => {
  const { env, image } = await home();
  const { err } = await rdctl(['image', 'remove', image.digest.slice(7, 9)], { env });
  expect(err).toContain('Give at least 4 digits of a digest');
});

test('remove removes all given images or none', async () => {
  const { env, image } = await home();
  expect(await rdctl(['image', 'remove', 'debian-a', 'nope'], { env })).toMatchObject({ exit: 1 });
  expect(JSON.parse((await rdctl(['image', 'ls', '-o', 'json'], { env })).out)).toHaveLength(1);
  const { exit, err } = await rdctl(['image', 'rm', image.digest.slice(7, 13)], { env });
  expect({ exit, err }).toEqual({ exit: 0, err: `Removed ${image.digest.slice(7, 19)} debian-a.\n` });
  expect(JSON.parse((await rdctl(['image', 'ls', '-o', 'json'], { env })).out)).toEqual([]);
});

test('remove requires --force for an image that the machine boots', async () => {
  const { env, directory, image } = await home();
  const driver = join(directory, 'state', 'drivers', 'qemu');
  mkdirSync(driver, { recursive: true });
  writeFileSync(join(driver, 'machine.json'), JSON.stringify({ power: 'off', image: image.digest }));
  writeFileSync(join(driver, 'data.qcow2'), 'all that there is');
  const refused = await rdctl(['image', 'remove', 'debian-a'], { env });
  expect(refused).toMatchObject({ exit: 1, out: '' });
  expect(refused.err).toContain(
    `the machine of this home boots ${image.digest.slice(7, 19)} debian-a; nothing was removed`,
  );
  expect(await rdctl(['image', 'remove', 'debian-a', '--force'], { env })).toMatchObject({ exit: 0 });
  expect(readFileSync(join(driver, 'data.qcow2'), 'utf8')).toBe('all that there is');
});
