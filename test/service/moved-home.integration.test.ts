import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { discover } from '../../src/client/discovery.ts';
import { homeService } from '../../src/client/home-service.ts';
import { stopLeft } from '../../src/service/stop-left.ts';
import { places } from '../../src/state/places.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const { signal } = new AbortController();
const at = (home: string) => ({
  home,
  env: { RDCTL_HOME: home, RDCTL_SIMULATED_LATENCY_MS: '0' },
  here: places({ RDCTL_HOME: home }, 'linux', ''),
});

/** A converged service in a home, and another path that the home can be moved to. */
async function runningHome() {
  const parent = temporaryDirectory();
  const home = join(parent, 'home');
  mkdirSync(home);
  const running = await startService({ home, power: 'started' });
  await running.converged();
  return { ...running, parent, elsewhere: at(join(parent, 'elsewhere')) };
}

test('a home that was moved while its service runs is refused by every command, with the command that moves it back', async () => {
  const { home, elsewhere } = await runningHome();
  renameSync(home, elsewhere.home);
  const told = {
    code: 'ERR_HOME_MOVED',
    message: `${elsewhere.home} was moved from ${home}, and the service (pid ${process.pid}) that was started with ${home} is still running`,
    advice: expect.stringMatching(`^Move it back \\(\`mv ${elsewhere.home} ${home}\`\\), stop everything`),
  };
  await expect(homeService(elsewhere.here)).rejects.toMatchObject(told);
  await expect(discover({}, elsewhere.env, 'linux')).rejects.toMatchObject(told);
  await expect(startService({ home: elsewhere.home })).rejects.toMatchObject(told);
  await expect(stopLeft({ env: elsewhere.env, platform: 'linux', signal })).rejects.toMatchObject(told);
  for (const argv of [
    ['plan', '-f', 'examples/moby.yaml'],
    ['apply', '-f', 'examples/moby.yaml'],
    ['start'],
    ['shutdown'],
    ['status'],
  ]) {
    const { exit, err } = await rdctl(argv, { env: elsewhere.env });
    expect({ argv, exit, err }).toMatchObject({ exit: 1, err: expect.stringContaining(told.message) });
  }
  expect(existsSync(home)).toBe(false);
  renameSync(elsewhere.home, home);
});

test('the service notices the move, does nothing and recreates nothing, and continues when the home is back', async () => {
  const { home, elsewhere, service, converged } = await runningHome();
  // The socket moves with the home; the port stays.
  const client = createClient({ ...service.connection, reached: { by: 'word' } });
  const before = await converged();
  renameSync(home, elsewhere.home);
  await expect.poll(async () => (await client.status()).backendState, { timeout: 20_000 }).toBe('ERROR');
  const { conditions } = await client.status();
  expect(JSON.stringify(conditions)).toContain('service.lock was moved or removed while the service uses it');
  await expect(client.putSettings({ version: 19, images: { namespace: 'late' } })).rejects.toMatchObject({
    details: [expect.stringContaining('was moved or removed'), expect.any(String)],
  });
  expect(existsSync(home)).toBe(false);
  renameSync(elsewhere.home, home);
  await expect.poll(async () => (await client.status()).converged, { timeout: 20_000 }).toBe(true);
  expect((await client.status()).counters.steps).toBe(before.counters.steps);
});

test('a service that ends while its home is elsewhere reports that it stopped nothing, and leaves the old place empty', async () => {
  const { home, here, elsewhere, service, parent } = await runningHome();
  renameSync(home, elsewhere.home);
  await service.stop('the test wants it');
  expect(service.backendStopped()).toBe(false);
  expect(existsSync(home)).toBe(false);
  // The pid of this process, which lives: as if the service were still running.
  await expect(homeService(elsewhere.here)).rejects.toMatchObject({ code: 'ERR_HOME_MOVED' });
  renameSync(elsewhere.home, home);
  expect(readdirSync(parent)).toEqual(['home']);
  expect(readdirSync(here.serviceLock)).toHaveLength(1);
});

test('a home has one service under all its names', async () => {
  const { home, parent, service } = await runningHome();
  const other = at(join(parent, 'other-name'));
  symlinkSync(home, other.home);
  expect(await homeService(other.here)).toMatchObject({ kind: 'running', holder: { pid: process.pid } });
  expect(await discover({}, other.env, 'linux')).toMatchObject({ port: service.port });
  await expect(startService({ home: other.home })).rejects.toMatchObject({ code: 'ERR_ALREADY_RUNNING' });
  expect((await rdctl(['status'], { env: other.env })).exit).toBe(0);
});

test('a copied home is another home: it neither finds nor stops the service of the original', async () => {
  const { home, here, elsewhere, client, service } = await runningHome();
  cpSync(home, elsewhere.home, { recursive: true, filter: (path) => !lstatSync(path).isSocket() });
  expect(existsSync(elsewhere.here.connectionFile)).toBe(true);
  expect(await homeService(elsewhere.here)).toMatchObject({ kind: 'none' });
  expect(await rdctl(['shutdown'], { env: elsewhere.env })).toMatchObject({ exit: 0, out: '' });
  const copy = await startService({ home: elsewhere.home });
  await copy.converged();
  expect(copy.service.port).not.toBe(service.port);
  expect(await discover({}, elsewhere.env, 'linux')).toMatchObject({ port: copy.service.port });
  expect(await discover({}, at(home).env, 'linux')).toMatchObject({ port: service.port });
  await copy.service.stop('the test wants it');
  expect(await homeService(here)).toMatchObject({ kind: 'running' });
  expect((await client.status()).converged).toBe(true);
  expect(JSON.parse(readFileSync(here.connectionFile, 'utf8'))).toMatchObject({ port: service.port });
});
