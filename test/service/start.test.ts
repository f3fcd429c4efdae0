import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { discover } from '../../src/client/discovery.ts';
import { runService } from '../../src/service.ts';
import { places } from '../../src/storage/places.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

async function occupied(port = 0): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

const paths = (home: string) => places({ RDCTL_HOME: home }, 'linux', '');

test('a second service for the same home is refused, naming pid and port, and disturbs nothing', async () => {
  const first = await startService({ power: 'stopped' });
  const before = readFileSync(first.here.connectionFile, 'utf8');
  await expect(startService({ home: first.home })).rejects.toMatchObject({
    code: 'ERR_ALREADY_RUNNING',
    message: `a service for ${first.home} is already running (pid ${process.pid}, port ${first.service.port})`,
  });
  expect(readFileSync(first.here.connectionFile, 'utf8')).toBe(before);
  expect((await first.client.status()).home).toBe(first.home);
});

test('two homes, two services', async () => {
  const [one, other] = await Promise.all([startService({ power: 'stopped' }), startService({ power: 'stopped' })]);
  expect(one.service.port).not.toBe(other.service.port);
  await expect(createClient({ ...other.service.connection, port: one.service.port }).status()).rejects.toMatchObject({
    code: 'ERR_UNAUTHORIZED',
  });
});

test('an explicit port that is taken is an error, and the home is free again afterwards', async () => {
  const home = temporaryDirectory();
  const port = await occupied();
  await expect(startService({ home, port })).rejects.toMatchObject({
    code: 'ERR_PORT_IN_USE',
    message: `port ${port} on 127.0.0.1 is in use by another program`,
  });
  expect(existsSync(paths(home).connectionFile)).toBe(false);
  const { service } = await startService({ home, power: 'stopped' });
  expect(service.port).not.toBe(port);
});

test('a connection file that a killed service left is replaced, and leads to the new one', async () => {
  const home = temporaryDirectory();
  write(paths(home).connectionFile, JSON.stringify({ user: 'user', password: 'old', port: 1, pid: 1 }));
  const env = { RDCTL_HOME: home };
  const stale = createClient(await discover({}, env, 'linux'));
  await expect(stale.status()).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
  const { service } = await startService({ home, power: 'stopped' });
  const found = await discover({}, env, 'linux');
  expect(found).toEqual(service.connection);
  expect((await createClient(found).status()).pid).toBe(process.pid);
});

test('a first start asks for a started backend unless told, and the wish survives', async () => {
  const first = await startService();
  expect((await first.client.status()).power).toBe('started');
  await first.client.setBackendState('STOPPED');
  await first.service.stop('enough');
  const second = await startService({ home: first.home });
  expect((await second.client.status()).power).toBe('stopped');
  await second.service.stop('enough');
  const third = await startService({ home: first.home, power: 'started' });
  expect((await third.client.status()).power).toBe('started');
});

test('a stop takes the backend down, and the wish for it to run stays', async () => {
  const first = await startService();
  await first.converged();
  await first.service.stop('enough');
  const second = await startService({ home: first.home });
  const early = await second.client.status();
  expect(early.power).toBe('started');
  expect((await second.converged()).counters.steps).toBeGreaterThan(0);
});

test('the generation never falls, also over a start', async () => {
  const first = await startService({ power: 'stopped' });
  const { generation = 0 } = await first.client.putSettings({ version: 19, images: { namespace: 'a' } });
  await first.service.stop('enough');
  const second = await startService({ home: first.home });
  expect((await second.client.status()).generation).toBeGreaterThan(generation);
});

test('settings survive, and the copy from before the last change is kept', async () => {
  const first = await startService({ power: 'stopped' });
  await first.client.putSettings({ version: 19, images: { namespace: 'one' } });
  await first.client.putSettings({ version: 19, images: { namespace: 'two' } });
  const before = await first.client.settings();
  await first.service.stop('enough');
  expect(JSON.parse(readFileSync(first.here.previousSettingsFile, 'utf8'))).toMatchObject({
    images: { namespace: 'one' },
  });
  const second = await startService({ home: first.home });
  expect(await second.client.settings()).toEqual(before);
  expect(await second.client.putSettings(before.settings)).toMatchObject({ text: 'no changes necessary' });
});

test('partial settings apply before anything starts; bad ones start nothing', async () => {
  const home = temporaryDirectory();
  await expect(startService({ home, settings: { containerEngine: { name: 'podman' } } })).rejects.toMatchObject({
    code: 'ERR_SETTINGS_INVALID',
    message: expect.stringContaining('Invalid value for "containerEngine.name": <"podman">'),
  });
  const { converged, client } = await startService({
    home,
    power: 'started',
    settings: { containerEngine: { name: 'containerd' } },
  });
  const status = await converged();
  expect(status.engine).toMatchObject({ name: 'containerd', state: 'running' });
  expect(status.phases.map(({ name }) => name).join()).not.toContain('moby');
  expect((await client.settings()).settings).toMatchObject({ containerEngine: { name: 'containerd' } });
});

test.each([
  ['not JSON at all', '{"version": 19,', 'it is not JSON'],
  ['empty', '', 'it is not JSON'],
  ['a list', '[]', 'it does not hold an object'],
  ['without a version', '{}', 'it has no version'],
  ['of a version that is text', '{"version":"19"}', 'its version is "19"'],
  ['of version 0', '{"version":0}', 'its version is 0'],
  ['of version 2.5', '{"version":2.5}', 'its version is 2.5'],
  ['with a wrong type', '{"version":19,"kubernetes":{"port":"many"}}', 'kubernetes.port is wrong'],
])('a settings file %s is set aside, never overwritten, and the start says so', async (_name, content, reason) => {
  const home = temporaryDirectory();
  const { settingsFile } = paths(home);
  write(settingsFile, content);
  const { client } = await startService({ home, power: 'stopped' });
  const [aside = ''] = readdirSync(dirname(settingsFile)).filter((name) => name.startsWith('settings.json.corrupt-'));
  expect(readFileSync(join(dirname(settingsFile), aside), 'utf8')).toBe(content);
  const { notices } = await client.status();
  expect(notices.join()).toContain(`The settings file could not be used: ${reason}`);
  expect(notices.join()).toContain(aside);
  expect(JSON.parse(readFileSync(settingsFile, 'utf8'))).toMatchObject({ version: 19 });
});

test('an older file is migrated and completed', async () => {
  const home = temporaryDirectory();
  write(
    paths(home).settingsFile,
    JSON.stringify({ version: 4, kubernetes: { containerEngine: 'containerd', memoryInGB: 3 } }),
  );
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.settings()).settings).toMatchObject({
    version: 19,
    containerEngine: { name: 'containerd' },
    virtualMachine: { memoryInGB: 3 },
    kubernetes: { port: 6443 },
  });
  expect((await client.status()).notices).toEqual([]);
});

test('a file of a newer release stops the start and stays as it is', async () => {
  const home = temporaryDirectory();
  write(paths(home).settingsFile, '{"version":25}');
  await expect(startService({ home })).rejects.toMatchObject({
    code: 'ERR_SETTINGS_FILE',
    message: expect.stringContaining('has settings of version 25'),
  });
  expect(readFileSync(paths(home).settingsFile, 'utf8')).toBe('{"version":25}');
});

test('a settings file that cannot be read stops the start', async () => {
  const home = temporaryDirectory();
  mkdirSync(paths(home).settingsFile, { recursive: true });
  await expect(startService({ home })).rejects.toMatchObject({
    code: 'ERR_SETTINGS_FILE',
    message: `could not read the settings file ${paths(home).settingsFile}: it is a directory`,
  });
});

test('a broken state file stops every start that does not name the driver, because it held that choice', async () => {
  const home = temporaryDirectory();
  const { stateFile } = paths(home);
  write(stateFile, '{');
  const unnamed = () =>
    runService({
      env: { RDCTL_HOME: home },
      platform: 'linux',
      power: 'keep',
      port: 0,
      allowHosts: [],
      policyDirectories: [],
    });
  for (const attempt of [1, 2]) {
    await expect(unnamed(), `attempt ${attempt}`).rejects.toMatchObject({
      code: 'ERR_IO',
      message: expect.stringContaining(stateFile),
      advice: expect.stringContaining('--driver'),
    });
  }
  const { client } = await startService({ home, power: 'stopped' });
  const { driver, notices } = await client.status();
  expect(driver.name).toBe('simulated');
  expect(notices.join()).toContain('state.json.corrupt-');
});

test('another driver on existing state is refused, and an unknown one is', async () => {
  const first = await startService({ power: 'stopped' });
  await first.service.stop('enough');
  await expect(startService({ home: first.home, driver: 'host' })).rejects.toMatchObject({ code: 'ERR_WRONG_TARGET' });
  await expect(startService({ driver: 'nothing' })).rejects.toMatchObject({ code: 'ERR_USAGE' });
});

test('a log directory that cannot be made is an error with advice', async () => {
  const home = temporaryDirectory();
  writeFileSync(join(home, 'logs'), '');
  await expect(startService({ home })).rejects.toMatchObject({
    code: 'ERR_IO',
    message: expect.stringContaining('log directory'),
  });
});
