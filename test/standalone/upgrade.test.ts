import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { compile } from '../../release/compile.ts';
import { ownTarget } from '../../release/targets.ts';
import { PRODUCT } from '../../src/product.ts';
import { type ChildOptions, rdctlProgram } from '../helpers/cli.ts';
import { filesOf, linkOrCopy, newKey, releases, served } from '../helpers/releases.ts';
import { copyOfTheSource } from '../helpers/source-copy.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { isStandalone, TOOL } from '../helpers/tool-program.ts';

const NEXT = '0.9.0';
const NOBODY = 65534;

/** The next version, which trusts a key by itself and knows where its releases are. */
let next: { file: string; folder: string; base: string; key: string };

beforeAll(async () => {
  if (!isStandalone) throw new Error('RDCTL_TEST_BINARY must name the file that npm run dist has made');
  const target = ownTarget();
  if (!target) throw new Error('there is no file for this computer');
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-next-'));
  const source = copyOfTheSource(folder);
  const product = join(source, 'src/product.ts');
  writeFileSync(product, readFileSync(product, 'utf8').replace(`version: '${PRODUCT.version}'`, `version: '${NEXT}'`));
  const base = join(folder, 'releases');
  const key = newKey(join(folder, 'key'));
  const file = join(folder, 'next');
  const signers = `release ${readFileSync(`${key}.pub`, 'utf8')}`;
  await compile(target, file, source, { url: pathToFileURL(base).href, signers });
  next = { file, folder, base, key };
});

afterAll(() => rmSync(next.folder, { recursive: true, force: true }));

/** The file alone in a directory of programs, and a base that has the next version: a directory, or a server. */
async function stage(base: 'directory' | 'server' = 'directory') {
  const there = releases();
  there.publish(NEXT, { path: next.file });
  const folder = temporaryDirectory();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const entry = join(bin, 'rdctl');
  linkOrCopy(TOOL, entry);
  const env = {
    RDCTL_HOME: join(folder, 'home'),
    RDCTL_DRIVER: 'simulated',
    RDCTL_SIMULATED_LATENCY_MS: '0',
    RDCTL_UPGRADE_URL: base === 'server' ? await served(filesOf(there.directory)) : there.directory,
  };
  const rdctl = (argv: string[], options: ChildOptions = {}) =>
    rdctlProgram(argv, { entry, cwd: folder, ...options, env: { ...env, ...options.env } });
  const upgrade = (options?: ChildOptions) => rdctl(['upgrade', '--allowed-signers', there.signers], options);
  const version = async () => JSON.parse((await rdctl(['version', '-o', 'json'])).out).version;
  const isFirst = (name: string) => readFileSync(join(bin, name)).equals(readFileSync(TOOL));
  return { there, folder, bin, entry, rdctl, upgrade, version, isFirst };
}

test('it upgrades itself, a running service stays as it is, and the way back goes both ways', async () => {
  const { bin, entry, rdctl, upgrade, version, isFirst } = await stage('server');
  symlinkSync('rdctl', join(bin, 'rdctl-app'));
  onTestFinished(async () => void (await rdctl(['shutdown'])));
  expect(await rdctl(['start', '--wait'])).toMatchObject({ exit: 0 });
  const before = JSON.parse((await rdctl(['status', '-o', 'json'])).out);
  const { exit, out, err } = await upgrade();
  expect([exit, out]).toEqual([0, `Upgraded ${entry} from ${PRODUCT.version} to ${NEXT}.\n`]);
  expect(err).toContain(`Process ${before.pid} and its engine keep the version they were started with`);
  expect(await version()).toBe(`v${NEXT}`);
  expect(statSync(entry).mode & 0o777).toBe(statSync(TOOL).mode & 0o777);
  expect((await rdctlProgram(['--version'], { entry: join(bin, 'rdctl-app') })).out).toContain(NEXT);
  const after = JSON.parse((await rdctl(['status', '-o', 'json'])).out);
  expect(after).toMatchObject({ pid: before.pid, version: PRODUCT.version });
  expect(await rdctl(['shutdown'])).toMatchObject({ exit: 0 });
  expect(await rdctl(['start', '--wait'])).toMatchObject({ exit: 0 });
  expect(JSON.parse((await rdctl(['status', '-o', 'json'])).out).version).toBe(NEXT);

  expect(isFirst('.rdctl.previous')).toBe(true);
  expect(await rdctl(['upgrade', '--back'])).toMatchObject({ exit: 0 });
  expect([await version(), isFirst('rdctl')]).toEqual([`v${PRODUCT.version}`, true]);
  expect(await rdctl(['upgrade', '--back'])).toMatchObject({ exit: 0 });
  expect(await version()).toBe(`v${NEXT}`);
  expect(readdirSync(bin).sort()).toEqual(['.rdctl.previous', 'rdctl', 'rdctl-app']);
});

test('without a key it refuses, and with one from its build it needs no configuration', async () => {
  const { there, rdctl, upgrade } = await stage();
  expect(await rdctl(['upgrade'])).toMatchObject({
    exit: 3,
    err: expect.stringContaining('this rdctl was built without a key for releases'),
  });
  expect(await upgrade()).toMatchObject({ exit: 0 });
  const env = { RDCTL_UPGRADE_URL: undefined };
  const publishIn = (version: string, key: string) => {
    const made = releases();
    made.publish(version, undefined, { key });
    rmSync(next.base, { recursive: true, force: true });
    cpSync(made.directory, next.base, { recursive: true });
  };
  publishIn('1.0.0', next.key);
  expect(await rdctl(['upgrade', '--check'], { env })).toMatchObject({
    exit: 2,
    out: expect.stringContaining(`rdctl 1.0.0 is at ${next.base}, and this is ${NEXT}.`),
  });
  publishIn('1.0.0', there.otherKey);
  expect(await rdctl(['upgrade', '--check'], { env })).toMatchObject({
    exit: 3,
    err: expect.stringContaining('a key that is not trusted here'),
  });
});

test('killed while it writes the new file, it is the old program, and the next upgrade cleans up', async () => {
  const { bin, upgrade, version } = await stage();
  const isWritten = () => readdirSync(bin).find((name) => name.startsWith('.rdctl.new-'));
  let pid = 0;
  const killed = upgrade({
    onSpawn: (child) => {
      pid = child.pid ?? 0;
    },
  });
  await vi.waitUntil(isWritten, { interval: 1, timeout: 60_000 });
  process.kill(pid, 'SIGKILL');
  expect(await killed).toMatchObject({ exit: -1, out: '' });
  expect(isWritten()).toBe(`.rdctl.new-${pid}.tmp`);
  expect(await version()).toBe(`v${PRODUCT.version}`);
  expect(await upgrade()).toMatchObject({ exit: 0 });
  expect(await version()).toBe(`v${NEXT}`);
  expect(readdirSync(bin).sort()).toEqual(['.rdctl.previous', 'rdctl']);
});

test.each(['one home', 'homes of their own'])(
  'two at once, of %s, leave the new program and the way back',
  async (homes) => {
    const { folder, bin, rdctl, upgrade, version, isFirst } = await stage('server');
    const other = homes === 'one home' ? {} : { env: { RDCTL_HOME: join(folder, 'other') } };
    const both = await Promise.all([upgrade(), upgrade(other)]);
    const refusal = /another upgrade is running|is version 0\.9\.0 by now|was replaced by something else meanwhile/;
    for (const { exit, err } of both) if (exit !== 0) expect([exit, err]).toEqual([3, expect.stringMatching(refusal)]);
    expect(both.some(({ exit }) => exit === 0)).toBe(true);
    expect(await version()).toBe(`v${NEXT}`);
    expect(isFirst('.rdctl.previous')).toBe(true);
    expect(await rdctl(['upgrade', '--back'])).toMatchObject({ exit: 0 });
    expect(readdirSync(bin).sort()).toEqual(['.rdctl.previous', 'rdctl']);
  },
);

test('a file for another processor never replaces it', async () => {
  const { there, bin, upgrade, version } = await stage();
  const header = readFileSync(TOOL).subarray(0, 4096);
  header.writeUInt16LE(0xfeed, 18);
  const other = join(bin, '..', 'other');
  writeFileSync(other, header);
  there.publish('1.0.0', { path: other });
  const { exit, err } = await upgrade();
  expect([exit, err]).toEqual([3, expect.stringContaining('rdctl-1.0.0-')]);
  expect(err).toContain('does not run on this computer');
  expect(await version()).toBe(`v${PRODUCT.version}`);
  expect(readdirSync(bin)).toEqual(['rdctl']);
});

test('in a directory that the user cannot write it names the command for root', async () => {
  const { there, folder, bin, entry, rdctl, version } = await stage('server');
  chmodSync(folder, 0o755);
  chmodSync(bin, 0o555);
  const isRoot = process.getuid?.() === 0;
  const home = join(folder, 'home');
  mkdirSync(home);
  if (isRoot) chownSync(home, NOBODY, NOBODY);
  // That beside the releases is in a directory that only this user can enter.
  const signers = join(folder, 'signers');
  copyFileSync(there.signers, signers);
  const argv = ['upgrade', '--allowed-signers', 'signers'];
  const { exit, err } = await rdctl(argv, { ...(isRoot ? { uid: NOBODY } : {}) });
  expect(exit).toBe(1);
  expect(err).toContain(`could not write ${bin}: permission denied\n`);
  expect(err).toMatch(
    new RegExp(`Run it as root: sudo ${entry} upgrade --base-url http://127.0.0.1:\\d+ --allowed-signers ${signers}\n`),
  );
  chmodSync(bin, 0o755);
  expect(await version()).toBe(`v${PRODUCT.version}`);
  expect(readdirSync(bin)).toEqual(['rdctl']);
});

test('it goes through the proxy that the variables name', async () => {
  const { rdctl, there } = await stage('server');
  const asked: string[] = [];
  const proxy = createServer().on('connect', ({ url = '' }, socket) => {
    asked.push(url);
    // The client hangs up first.
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const at = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const check = (env: Record<string, string>) =>
    rdctl(['upgrade', '--check', '--allowed-signers', there.signers], { env });
  const RDCTL_UPGRADE_URL = 'https://releases.example';
  expect(await check({ RDCTL_UPGRADE_URL, HTTPS_PROXY: at })).toMatchObject({ exit: 1 });
  expect(asked).toEqual(['releases.example:443']);
  // Nothing listens there, at an address of this computer that is not one of the loopback interface.
  const excepted = { RDCTL_UPGRADE_URL: 'https://0.0.0.0:1', HTTPS_PROXY: at, NO_PROXY: '0.0.0.0' };
  expect(await check(excepted)).toMatchObject({ exit: 1 });
  expect(asked).toEqual(['releases.example:443']);
});

test('it reaches a server on this computer without the proxy', async () => {
  const { upgrade, version } = await stage('server');
  const proxy = await served((_, response) => void response.writeHead(502).end());
  expect(await upgrade({ env: { HTTP_PROXY: proxy, http_proxy: proxy } })).toMatchObject({ exit: 0 });
  expect(await version()).toBe(`v${NEXT}`);
});
