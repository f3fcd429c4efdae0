import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { discover } from '../../src/client/discovery.ts';
import { readStoredSettings } from '../../src/client/offline.ts';
import { RdError } from '../../src/errors.ts';
import { runService } from '../../src/service.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { places } from '../../src/state/places.ts';
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

test('a second service for the same home is refused with the pid and port of the first, which is unaffected', async () => {
  const first = await startService({ power: 'stopped' });
  const before = readFileSync(first.here.connectionFile, 'utf8');
  await expect(startService({ home: first.home })).rejects.toMatchObject({
    code: 'ERR_ALREADY_RUNNING',
    message: `a service for ${first.home} is already running (pid ${process.pid}, port ${first.service.port})`,
  });
  expect(readFileSync(first.here.connectionFile, 'utf8')).toBe(before);
  expect((await first.client.status()).home).toBe(first.home);
});

test('two homes can have two services', async () => {
  const [one, other] = await Promise.all([startService({ power: 'stopped' }), startService({ power: 'stopped' })]);
  expect(one.service.port).not.toBe(other.service.port);
  const asOther = createClient({
    ...other.service.connection,
    port: one.service.port,
    reached: { by: 'word' },
  });
  await expect(asOther.status()).rejects.toMatchObject({
    code: 'ERR_UNAUTHORIZED',
  });
});

test('an explicit port in use is an error, and the home is free again afterwards', async () => {
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

test('a connection file of a killed service is replaced', async () => {
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

test('a first start desires a started backend by default, and that is stored', async () => {
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

test('a stop takes the backend down without changing the desired power state', async () => {
  const first = await startService();
  await first.converged();
  await first.service.stop('enough');
  const second = await startService({ home: first.home });
  const early = await second.client.status();
  expect(early.power).toBe('started');
  expect((await second.converged()).counters.steps).toBeGreaterThan(0);
});

test('the generation never decreases, also across starts', async () => {
  const first = await startService({ power: 'stopped' });
  const { generation = 0 } = await first.client.putSettings({ version: 19, images: { namespace: 'a' } });
  await first.service.stop('enough');
  const second = await startService({ home: first.home });
  expect((await second.client.status()).generation).toBeGreaterThan(generation);
});

test('settings survive a restart, and the copy from before the last change is kept', async () => {
  const first = await startService({ power: 'stopped' });
  await first.client.putSettings({ version: 19, images: { namespace: 'one' } });
  await first.client.putSettings({ version: 19, images: { namespace: 'two' } });
  // The tag is another one in every service.
  const { etag: _, ...before } = await first.client.settings();
  await first.service.stop('enough');
  expect(JSON.parse(readFileSync(first.here.previousSettingsFile, 'utf8'))).toMatchObject({
    images: { namespace: 'one' },
  });
  const second = await startService({ home: first.home });
  expect(await second.client.settings()).toMatchObject(before);
  expect(await second.client.putSettings(before.settings)).toMatchObject({ text: 'no changes necessary' });
});

test('partial settings apply before anything starts; bad ones prevent the start', async () => {
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

/** Settings as a service writes them. */
function stored(change: (settings: Settings) => void): string {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  change(settings);
  return `${JSON.stringify(settings, null, 2)}\n`;
}

function asides(path: string): string[] {
  const names = readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.corrupt-`));
  return names.map((name) => join(dirname(path), name));
}

test.each([
  ['without a version', '{}', ':1:1: version is missing'],
  ['of a version that is text', '{"version":"19"}', ':1:12: "19" is not a settings version (/version)'],
  ['of version 0', '{"version":0}', ':1:12: 0 is not a settings version (/version)'],
  ['of version 2.5', '{"version":2.5}', ':1:12: 2.5 is not a settings version (/version)'],
  ['with a list', '[]', ':1:1: not an object with settings'],
  ['with a number', '7', ':1:1: not an object with settings'],
  ['with a wrong type', '{"version":19,\n"kubernetes":{"port":"many"}}', ':2:22: "kubernetes.port" cannot be "many"'],
  ['with null', '{"version":19,\n"kubernetes":{"port":null}}', ':2:22: "kubernetes.port" cannot be null'],
  ['out of range', '{"version":19,"kubernetes":{"port":70000}}', ':1:36: "kubernetes.port" cannot be 70000'],
  [
    'with an unknown value',
    '{"version":19,"containerEngine":{"name":"podman"}}',
    ':1:41: "containerEngine.name" cannot',
  ],
  ['with a value for a section', '{"version":19,"containerEngine":7}', ':1:33: "containerEngine" is a section'],
  ['with a bad size', '{"version":19,"experimental":{"virtualMachine":{"diskSize":"big"}}}', 'diskSize'],
  ['with a key twice', '{"version":19,"images":{"showAll":true,"showAll":false}}', ':1:40: '],
  ['of an older version', '{"version":10,"kubernetes":{"port":"many"}}', ':1:36: "kubernetes.port" cannot be "many"'],
])('a settings file %s fails the start with its position, and stays unchanged', async (_name, content, finding) => {
  const home = temporaryDirectory();
  const { settingsFile, stateFile } = paths(home);
  write(settingsFile, content);
  const error = await startService({ home, power: 'stopped' }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: 'ERR_SETTINGS_FILE',
    message: `the settings file ${settingsFile} has errors; nothing was started or changed`,
    advice: 'Correct it, or remove it to begin with default settings',
    details: [expect.stringContaining(settingsFile)],
  });
  expect(error instanceof RdError && error.details[0]).toContain(finding);
  expect(readFileSync(settingsFile, 'utf8')).toBe(content);
  expect(asides(settingsFile)).toEqual([]);
  expect(existsSync(stateFile)).toBe(false);
});

test('every error of a settings file is reported, with the command that goes back', async () => {
  const home = join(temporaryDirectory(), "it's here");
  const { settingsFile, previousSettingsFile } = paths(home);
  const bad = stored((settings) => {
    Object.assign(settings.kubernetes, { port: 'many' });
    Object.assign(settings.containerEngine, { name: 'podman' });
    Object.assign(settings.containerEngine.allowedImages, { enabled: 'yes' });
  });
  write(settingsFile, bad);
  const before = stored((settings) => Object.assign(settings.images, { namespace: 'before' }));
  write(previousSettingsFile, before);
  const error = await startService({ home }).catch((thrown: unknown) => thrown);
  if (!(error instanceof RdError)) throw error;
  expect(error.details.map((line) => /\((\/[^)]*)\)/.exec(line)?.[1])).toEqual([
    '/containerEngine/allowedImages/enabled',
    '/containerEngine/name',
    '/kubernetes/port',
  ]);
  const [, command = ''] = error.advice?.split('go back with: ') ?? [];
  expect(command).toMatch(/^mv '/);
  execFileSync('sh', ['-c', command]);
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'before' } });
});

test('going back is not offered when the previous copy has errors too', async () => {
  const home = temporaryDirectory();
  const { settingsFile, previousSettingsFile } = paths(home);
  write(settingsFile, '{}');
  write(previousSettingsFile, '{"version":19,"kubernetes":{"port":0}}');
  await expect(startService({ home })).rejects.toMatchObject({
    advice: 'Correct it, or remove it to begin with default settings',
  });
});

test('a byte order mark and another layout are accepted; unknown names are reported', async () => {
  const home = temporaryDirectory();
  const { settingsFile } = paths(home);
  write(settingsFile, '\uFEFF{"version":19,"images":{"namespace":"mine"},"nonsense":true,"containers":{"what":1}}');
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'mine' } });
  expect((await client.status()).notices).toEqual([
    `${settingsFile}: unknown settings "nonsense", "containers.what" are ignored.`,
  ]);
});

test.each([
  ['a comment', '{\n  // mine\n  "version": 19\n}\n', '2:3: comments are not allowed in JSON'],
  ['a comma too many', '{\n  "version": 19,\n}\n', '3:1: a "," comes before the "}"'],
])(
  'a settings file that a person gave %s is reported with the position, and left alone',
  async (_name, content, mistake) => {
    const home = temporaryDirectory();
    const { settingsFile, previousSettingsFile } = paths(home);
    write(settingsFile, content);
    write(
      previousSettingsFile,
      stored(() => undefined),
    );
    await expect(startService({ home, power: 'stopped' })).rejects.toMatchObject({
      code: 'ERR_SETTINGS_FILE',
      details: [`${settingsFile}:${mistake}`],
    });
    expect(readFileSync(settingsFile, 'utf8')).toBe(content);
    expect(asides(settingsFile)).toEqual([]);
  },
);

test.each([
  ['cut off', '{"version": 19,'],
  ['empty', ''],
  ['of zeros', '\0'.repeat(64)],
  ['that is no JSON at all', 'version: 19\n'],
])('a settings file %s is replaced by the copy from before the last change', async (_name, content) => {
  const home = temporaryDirectory();
  const { settingsFile, previousSettingsFile, logs } = paths(home);
  const good = stored((settings) => {
    settings.containers.namespace = 'good';
  });
  write(settingsFile, content);
  write(previousSettingsFile, good);
  const { client, service } = await startService({ home, power: 'stopped' });
  const { notices } = await client.status();
  const [aside = ''] = asides(settingsFile);
  expect(readFileSync(aside, 'utf8')).toBe(content);
  expect(notices).toEqual([
    `The settings file was not JSON. It is kept as ${aside}, and the settings from before the last change are in effect again.`,
  ]);
  expect((await client.settings()).settings).toEqual(JSON.parse(good));
  // The settings in force, the file and the copy are equal; the next change moves those in force into the copy.
  expect(readFileSync(settingsFile, 'utf8')).toBe(good);
  expect(readFileSync(previousSettingsFile, 'utf8')).toBe(good);
  await client.putSettings({ version: 19, images: { namespace: 'next' } });
  expect(readFileSync(previousSettingsFile, 'utf8')).toBe(good);
  await service.stop('enough');
  expect(readFileSync(join(logs, 'service.log'), 'utf8')).toContain(JSON.stringify(notices[0]).slice(1, -1));
  const second = await startService({ home, power: 'stopped' });
  expect((await second.client.status()).notices).toEqual([]);
});

test('a missing settings file is replaced by the copy from before the last change, with a notice', async () => {
  const home = temporaryDirectory();
  const { settingsFile, previousSettingsFile } = paths(home);
  const first = await startService({ home, power: 'stopped', settings: { containers: { namespace: 'good' } } });
  await first.client.putSettings({ version: 19, images: { namespace: 'next' } });
  await first.service.stop('the test goes on');
  const good = readFileSync(previousSettingsFile, 'utf8');
  rmSync(settingsFile);
  expect(
    (await readStoredSettings(places({ RDCTL_HOME: home }, 'linux', ''), 'linux', { arch: 'x64' })).settings,
  ).toEqual(JSON.parse(good));

  const defaults = join(home, 'defaults.json');
  write(defaults, '{"version":19,"containers":{"namespace":"of the administrator"}}');
  const second = await startService({ home, power: 'stopped', policies: { defaults } });
  expect((await second.client.status()).notices).toEqual([
    `The settings file ${settingsFile} was missing, and the settings from before the last change are in effect again. ` +
      `To start with default settings, stop the service and delete ${previousSettingsFile} together with it.`,
  ]);
  expect((await second.client.settings()).settings).toMatchObject({ containers: { namespace: 'good' } });
  expect([settingsFile, previousSettingsFile].map((path) => readFileSync(path, 'utf8'))).toEqual([good, good]);
  await second.service.stop('the test goes on');

  // As the notice says.
  for (const path of [settingsFile, previousSettingsFile]) rmSync(path);
  const third = await startService({ home, power: 'stopped' });
  expect((await third.client.status()).notices).toEqual([]);
  expect((await third.client.settings()).settings).not.toMatchObject({ containers: { namespace: 'good' } });
});

test('an unusable copy is reported and kept when the settings file is missing', async () => {
  const home = temporaryDirectory();
  const { previousSettingsFile } = paths(home);
  write(previousSettingsFile, '{"version": 1');
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.status()).notices).toEqual([expect.stringContaining('default settings are in effect')]);
  expect(asides(previousSettingsFile).map((each) => readFileSync(each, 'utf8'))).toEqual(['{"version": 1']);
});

test('settings given at a start after a corrupt file do not change the copy', async () => {
  const home = temporaryDirectory();
  const { settingsFile, previousSettingsFile } = paths(home);
  const good = stored((settings) => Object.assign(settings.images, { namespace: 'good' }));
  write(settingsFile, '{');
  write(previousSettingsFile, good);
  const { client } = await startService({ home, power: 'stopped', settings: { containers: { namespace: 'given' } } });
  expect((await client.settings()).settings).toMatchObject({
    images: { namespace: 'good' },
    containers: { namespace: 'given' },
  });
  expect(readFileSync(previousSettingsFile, 'utf8')).toBe(good);
});

test.each([
  ['is missing', undefined, 'there is no copy from before the last change.'],
  ['is garbled', '{"version": 1', 'the copy from before the last change is not usable either'],
  ['has mistakes', '{"version": 19, "kubernetes": 1}', 'the copy from before the last change is not usable either'],
])('defaults replace a corrupt file when the copy %s, and nothing is lost', async (_name, copy, notice) => {
  const home = temporaryDirectory();
  const { settingsFile, previousSettingsFile } = paths(home);
  write(settingsFile, '{');
  if (copy !== undefined) write(previousSettingsFile, copy);
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.status()).notices).toEqual([expect.stringContaining(notice)]);
  expect(JSON.parse(readFileSync(settingsFile, 'utf8'))).toMatchObject({ version: 19 });
  await client.putSettings({ version: 19, images: { namespace: 'next' } });
  const kept = (path: string) => asides(path).map((each) => readFileSync(each, 'utf8'));
  expect(kept(settingsFile)).toEqual(['{']);
  expect(kept(previousSettingsFile)).toEqual(copy === undefined ? [] : [copy]);
});

test('a failed start leaves a corrupt file, and the next one still finds the copy', async () => {
  const home = temporaryDirectory();
  const { settingsFile, previousSettingsFile } = paths(home);
  write(settingsFile, '{');
  write(
    previousSettingsFile,
    stored((settings) => Object.assign(settings.images, { namespace: 'good' })),
  );
  const settings = { kubernetes: { port: 0 } };
  for (const attempt of [1, 2]) {
    await expect(startService({ home, settings }), `attempt ${attempt}`).rejects.toMatchObject({
      code: 'ERR_SETTINGS_INVALID',
    });
    expect(readFileSync(settingsFile, 'utf8')).toBe('{');
  }
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'good' } });
  expect(asides(settingsFile)).toHaveLength(1);
});

test('an older file is migrated and completed, and written with the first change', async () => {
  const home = temporaryDirectory();
  const { settingsFile } = paths(home);
  const older = JSON.stringify({ version: 4, kubernetes: { containerEngine: 'containerd', memoryInGB: 3 } });
  write(settingsFile, older);
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.settings()).settings).toMatchObject({
    version: 19,
    containerEngine: { name: 'containerd' },
    virtualMachine: { memoryInGB: 3 },
    kubernetes: { port: 6443 },
  });
  expect((await client.status()).notices).toEqual([]);
  expect(readFileSync(settingsFile, 'utf8')).toBe(older);
  await client.putSettings({ version: 19, images: { namespace: 'one' } });
  expect(JSON.parse(readFileSync(settingsFile, 'utf8'))).toMatchObject({ version: 19, images: { namespace: 'one' } });
});

test('a file of a newer release fails the start and stays unchanged', async () => {
  const home = temporaryDirectory();
  write(paths(home).settingsFile, '{"version":25}');
  await expect(startService({ home })).rejects.toMatchObject({
    code: 'ERR_SETTINGS_FILE',
    message: expect.stringContaining('has settings version 25'),
  });
  expect(readFileSync(paths(home).settingsFile, 'utf8')).toBe('{"version":25}');
});

test('an unreadable settings file fails the start', async () => {
  const home = temporaryDirectory();
  mkdirSync(paths(home).settingsFile, { recursive: true });
  await expect(startService({ home })).rejects.toMatchObject({
    code: 'ERR_SETTINGS_FILE',
    message: `could not read the settings file ${paths(home).settingsFile}: it is a directory`,
  });
});

test('a corrupt state file fails every start without an explicit driver, because it recorded that choice', async () => {
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
      policies: { places: [] },
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

test('another driver on existing state is refused, and so is an unknown one', async () => {
  const first = await startService({ power: 'stopped' });
  await first.service.stop('enough');
  await expect(startService({ home: first.home, driver: 'host' })).rejects.toMatchObject({ code: 'ERR_WRONG_TARGET' });
});

test.each(['driver', 'environment'])(
  'an unknown driver name (%s) is refused before anything is created',
  async (by) => {
    const home = join(temporaryDirectory(), 'home');
    const options = { env: { RDCTL_HOME: home, RDCTL_DRIVER: by === 'environment' ? 'nothing' : undefined } };
    const start = runService({
      ...options,
      ...(by === 'driver' ? { driver: 'nothing' } : {}),
      platform: 'linux',
      power: 'keep',
      allowHosts: [],
    });
    await expect(start).rejects.toMatchObject({
      code: 'ERR_USAGE',
      message: 'there is no driver "nothing"',
      advice: 'Available drivers: simulated, qemu, host.',
    });
    expect(existsSync(home)).toBe(false);
  },
);

test('a log directory that cannot be created is an error with advice', async () => {
  const home = temporaryDirectory();
  writeFileSync(join(home, 'logs'), '');
  await expect(startService({ home })).rejects.toMatchObject({
    code: 'ERR_IO',
    message: `could not create the directory ${join(home, 'logs')}: ${join(home, 'logs')} is a file`,
    advice: expect.stringContaining('RDCTL_HOME'),
  });
});

test('an endlessly nested settings file fails the start and stays unchanged', async () => {
  const home = temporaryDirectory();
  const { settingsFile } = paths(home);
  const text = `{"version":19,"x":${'['.repeat(5000)}${']'.repeat(5000)}}`;
  write(settingsFile, text);
  await expect(startService({ home })).rejects.toMatchObject({
    code: 'ERR_SETTINGS_FILE',
    message: `the settings file ${settingsFile} nests deeper than 100 levels`,
  });
  expect(readFileSync(settingsFile, 'utf8')).toBe(text);
});
