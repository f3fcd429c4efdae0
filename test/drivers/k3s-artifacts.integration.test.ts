import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { artifactNames, artifactStore, sumIn } from '../../src/drivers/clusters/k3s/artifacts.ts';
import { type K3sVersion, parseK3s } from '../../src/drivers/clusters/k3s/releases.ts';
import { releaseServer, serve, sha256 } from '../helpers/k3s-release-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NEVER = new AbortController().signal;
const PROGRAM = Buffer.from(Array.from({ length: 150_000 }, (_, index) => index % 241));
const IMAGES = Buffer.from('images');
const AIRGAP = 'k3s-airgap-images-amd64.tar.gz';

function release(text = 'v1.33.6+k3s1'): K3sVersion {
  const found = parseK3s(text);
  if (!found) throw new Error(text);
  return found;
}

async function scene() {
  const server = await releaseServer();
  onTestFinished(() => server.close());
  server.publish('v1.33.6+k3s1', { 'k3s-arm64': 'another', k3s: PROGRAM, 'k3s.old': 'old', [AIRGAP]: IMAGES });
  const directory = join(temporaryDirectory(), 'cache');
  const store = () => artifactStore({ url: server.releasesUrl, directory, fetch, sleep: async () => undefined });
  const path = (name: string) => `/v1.33.6+k3s1/${name}`;
  const at = (name: string) => join(directory, 'v1.33.6+k3s1', name);
  return { server, directory, store, path, at };
}

test('downloads program and images, verifies them, and then uses the cache', async () => {
  const { server, directory, store, at } = await scene();
  expect(await store().kept('amd64')).toEqual([]);
  const files = await store().fetch(release(), 'amd64', NEVER);
  expect(files).toEqual({ program: at('k3s'), images: at(AIRGAP) });
  expect(readFileSync(files.program).equals(PROGRAM)).toBe(true);
  expect(statSync(files.program).mode & 0o777).toBe(0o755);
  expect(readdirSync(join(directory, 'downloads'))).toEqual([]);
  expect((await store().kept('amd64')).map(({ text }) => text)).toEqual(['v1.33.6+k3s1']);
  expect(await store().kept('arm64')).toEqual([]);
  const asked = server.requests.length;
  await server.close();
  await store().fetch(release(), 'amd64', NEVER);
  expect(server.requests).toHaveLength(asked);
});

test('the plus sign in a release URL is encoded', async () => {
  const urls: string[] = [];
  const store = artifactStore({
    url: 'https://example.invalid/download',
    directory: temporaryDirectory(),
    fetch: async (url) => {
      urls.push(url);
      return new Response('', { status: 404 });
    },
    sleep: async () => undefined,
  });
  await expect(store.fetch(release(), 'arm64', NEVER)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: expect.stringMatching(/there is no release v1\.33\.6\+k3s1/),
  });
  expect(urls).toEqual(['https://example.invalid/download/v1.33.6%2Bk3s1/sha256sum-arm64.txt']);
});

test.each([
  ['amd64', { program: 'k3s', images: 'k3s-airgap-images-amd64.tar.gz', sums: 'sha256sum-amd64.txt' }],
  ['arm64', { program: 'k3s-arm64', images: 'k3s-airgap-images-arm64.tar.gz', sums: 'sha256sum-arm64.txt' }],
] as const)('release files on %s', (architecture, names) => expect(artifactNames(architecture)).toEqual(names));

const SUM = 'a'.repeat(64);
test.each<[string, string, string | undefined]>([
  ['the file', `${SUM}  k3s\n`, SUM],
  ['the file as binary, in capitals, on Windows', `${SUM.toUpperCase()} *k3s\r\n`, SUM],
  ['the file among others', `${'b'.repeat(64)}  k3s-arm64\n${SUM}  k3s\n${'c'.repeat(64)}  k3s.exe\n`, SUM],
  ['the same twice', `${SUM}  k3s\n${SUM}  k3s\n`, SUM],
  ['two sums', `${SUM}  k3s\n${'b'.repeat(64)}  k3s\n`, undefined],
  [
    'longer names only',
    `${SUM}  k3s-airgap-images-amd64.tar\n${SUM}  ./k3s\n${SUM}  dir/k3s\n${SUM}  k3s \n`,
    undefined,
  ],
  ['a short sum', `${'a'.repeat(63)}  k3s\n`, undefined],
  ['nothing', '', undefined],
])('the checksum in a list with %s', (_, text, sum) => expect(sumIn(text, 'k3s')).toBe(sum));

test('is only that of the exact file', () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1 }).filter((name) => name !== 'k3s' && !/[\r\n]/.test(name)),
      (name) => {
        expect(sumIn(`${SUM}  ${name}\n`, 'k3s')).toBeUndefined();
      },
    ),
  );
});

test('a file with a wrong checksum is not kept, and the right one is accepted later', async () => {
  const { server, store, path, at, directory } = await scene();
  server.mischief.set(path('k3s'), (_, response) => void response.end('something else'));
  await expect(store().fetch(release(), 'amd64', NEVER)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: expect.stringMatching(/not the expected file/),
  });
  expect(existsSync(at('k3s'))).toBe(false);
  expect(readdirSync(join(directory, 'downloads'))).toEqual([]);
  server.mischief.clear();
  await store().fetch(release(), 'amd64', NEVER);
  expect(readFileSync(at('k3s')).equals(PROGRAM)).toBe(true);
});

test('a wrong checksum list is fetched again', async () => {
  const { server, store, path, at } = await scene();
  server.mischief.set(
    path('sha256sum-amd64.txt'),
    (_, response) => void response.end(`${SUM}  k3s\n${SUM}  ${AIRGAP}\n`),
  );
  await expect(store().fetch(release(), 'amd64', NEVER)).rejects.toMatchObject({ code: 'ERR_DRIVER_TERMINAL' });
  server.mischief.clear();
  await store().fetch(release(), 'amd64', NEVER);
  expect(existsSync(at('k3s'))).toBe(true);
});

test.each(['k3s', AIRGAP])('a checksum list without an entry for %s', async (missing) => {
  const { server, store, path } = await scene();
  const lines = [PROGRAM, IMAGES].map((data, index) => `${sha256(data)}  ${index === 0 ? 'k3s' : AIRGAP}`);
  const text = lines.filter((line) => !line.endsWith(`  ${missing}`)).join('\n');
  server.mischief.set(path('sha256sum-amd64.txt'), (_, response) => void response.end(text));
  await expect(store().fetch(release(), 'amd64', NEVER)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: `v1.33.6+k3s1 has no file ${missing}: sha256sum-amd64.txt does not name it`,
  });
});

test('a truncated download is resumed', async () => {
  const { server, store, path, at } = await scene();
  let first = true;
  server.mischief.set(path('k3s'), (request, response, body) => {
    if (!first) return serve(request, response, body);
    first = false;
    response.writeHead(200, { etag: `"${sha256(PROGRAM).slice(0, 16)}"`, 'content-length': PROGRAM.length });
    response.write(PROGRAM.subarray(0, 70_000), () => response.destroy());
  });
  await store().fetch(release(), 'amd64', NEVER);
  expect(readFileSync(at('k3s')).equals(PROGRAM)).toBe(true);
  expect(server.requests.filter((asked) => asked === path('k3s'))).toHaveLength(2);
});

test('a body that is always too short is given up, and no file gets the final name', async () => {
  const { server, store, path, at } = await scene();
  server.mischief.set(path('k3s'), (_, response) => {
    response.writeHead(200, { 'content-length': PROGRAM.length });
    response.write(PROGRAM.subarray(0, 10), () => response.destroy());
  });
  await expect(store().fetch(release(), 'amd64', NEVER)).rejects.toMatchObject({ code: 'ERR_CONNECTION' });
  expect(existsSync(at('k3s'))).toBe(false);
});

test('follows redirects within limits', async () => {
  const { server, store, path, at } = await scene();
  server.publish('elsewhere', { one: PROGRAM, two: '' });
  server.mischief.set(
    path('k3s'),
    (_, response) => void response.writeHead(302, { location: '/download/elsewhere/two' }).end(),
  );
  server.mischief.set('/elsewhere/two', (_, response) => void response.writeHead(302, { location: 'one' }).end());
  await store().fetch(release(), 'amd64', NEVER);
  expect(readFileSync(at('k3s')).equals(PROGRAM)).toBe(true);
});

test('gives up on a redirect loop', async () => {
  const { server, store, path } = await scene();
  server.mischief.set(
    path('k3s'),
    (request, response) => void response.writeHead(302, { location: request.url ?? '' }).end(),
  );
  await expect(store().fetch(release(), 'amd64', NEVER)).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
    message: expect.stringMatching(/redirect/),
  });
});

test('a file missing on the server', async () => {
  const { server, store, path } = await scene();
  server.mischief.set(path(AIRGAP), (_, response) => void response.writeHead(404).end());
  await expect(store().fetch(release(), 'amd64', NEVER)).rejects.toMatchObject({ code: 'ERR_NOT_FOUND' });
});

test('a damaged cached file is fetched again', async () => {
  const { store, at } = await scene();
  await store().fetch(release(), 'amd64', NEVER);
  writeFileSync(at('k3s'), 'damaged');
  await store().fetch(release(), 'amd64', NEVER);
  expect(readFileSync(at('k3s')).equals(PROGRAM)).toBe(true);
});

test('ignores directories that are not releases', async () => {
  const { store, directory } = await scene();
  await store().fetch(release(), 'amd64', NEVER);
  for (const name of ['v1.2', 'v1.32.0+k3s1', '..x']) mkdirSync(join(directory, name));
  expect((await store().kept('amd64')).map(({ text }) => text)).toEqual(['v1.33.6+k3s1']);
});
