import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { policyPlaces, policyPrograms } from '../../profiles/policies/places.ts';
import { readPolicies } from '../../profiles/policies/read.ts';
import { run } from '../../src/os/run.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HOST = { platform: 'linux', arch: 'x64' } as const;

let directory = '';
beforeEach(() => {
  directory = temporaryDirectory();
});

const place = (name: string) => ({
  format: 'json' as const,
  defaults: join(directory, name, 'defaults.json'),
  locked: join(directory, name, 'locked.json'),
});

function write(name: string, which: 'defaults' | 'locked', content: unknown): string {
  mkdirSync(join(directory, name), { recursive: true });
  const path = place(name)[which];
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const read = (...names: string[]) => readPolicies({ places: names.map(place), programs: policyPrograms() }, HOST);

test('system locations come first and do not depend on the environment', () => {
  const linux = (env: Record<string, string>, home: string) => policyPlaces(env, 'linux', home);
  const json = (defaults: string, locked: string) => ({ format: 'json', defaults, locked });
  const system = ['/etc', '/usr/etc'].map((etc) => ({
    ...json(`${etc}/rancher-desktop/defaults.json`, `${etc}/rancher-desktop/locked.json`),
    system: true,
  }));
  const own = (defaults: string, locked: string) => ({ ...json(defaults, locked), own: true });
  const user = own('/home/u/.config/rancher-desktop.defaults.json', '/home/u/.config/rancher-desktop.locked.json');
  expect(linux({ XDG_CONFIG_HOME: '/x', RDCTL_HOME: '/h' }, '/home/u')).toEqual([
    ...system,
    own('/x/rancher-desktop.defaults.json', '/x/rancher-desktop.locked.json'),
  ]);
  expect(linux({}, '/home/u')).toEqual([...system, user]);
  expect(linux({ XDG_CONFIG_HOME: 'relative' }, '/home/u')).toEqual([...system, user]);
  // Without a home the user has no location; a relative path would depend on where the service was started.
  expect(linux({}, '')).toEqual(system);
});

test('without a profile there is no policy', async () => {
  expect(await read('a', 'b')).toEqual({
    warnings: [],
    looked: ['a', 'b'].map((name) => `${place(name).defaults}, ${place(name).locked}`),
  });
});

test('the first location with either file provides both, and later ones are not read', async () => {
  const file = write('a', 'defaults', { version: 19, images: { namespace: 'a' } });
  write('b', 'locked', 'not JSON');
  expect(await read('none', 'a', 'b')).toEqual({
    looked: ['none', 'a'].map((name) => `${place(name).defaults}, ${place(name).locked}`),
    defaults: { source: file, version: 19, settings: { version: 19, images: { namespace: 'a' } } },
    warnings: [],
  });
});

test('older profiles are migrated; a locked one freezes later settings', async () => {
  write('a', 'locked', { version: 10, containerEngine: { name: 'docker' }, kubernetes: { version: 'v1.30.2+k3s1' } });
  const { locked } = await read('a');
  expect(locked?.settings).toEqual({
    version: 19,
    containerEngine: { name: 'moby' },
    kubernetes: { version: '1.30.2' },
    experimental: { containerEngine: { webAssembly: { enabled: false } } },
  });
});

test('unknown fields are ignored and reported', async () => {
  const file = write('a', 'locked', { version: 19, images: { namespace: 'x', extra: 1 } });
  const { locked, warnings } = await read('a');
  expect(locked?.settings).toEqual({ version: 19, images: { namespace: 'x' } });
  expect(warnings).toEqual([`${file}: unknown settings "images.extra" are ignored.`]);
});

test.each([
  ['{', 'Error parsing deployment profile from FILE: it is not JSON'],
  ['[]', 'Error parsing deployment profile from FILE: it does not contain an object'],
  [
    '{}',
    'Invalid deployment file FILE: no version specified. Add a version field to make it valid (current version is 19).',
  ],
  [
    '{"version":"x"}',
    'Error in deployment file FILE: updating settings requires specifying an API version, but "x" is not a proper config version',
  ],
  [
    '{"version":-1}',
    'Error in deployment file FILE: updating settings requires specifying an API version, but "-1" is not a positive number',
  ],
  ['{"version":25}', 'Error in deployment profiles: FILE: its version is 25, and the newest known is 19'],
])('the profile %s fails the start, naming the file', async (content, message) => {
  for (const which of ['defaults', 'locked'] as const) {
    const file = write(which, which, content);
    await expect(read(which)).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: message.replace('FILE', file),
    });
  }
});

test('the advice names who can fix a profile: its administrator, or the user', async () => {
  write('a', 'locked', { version: 19, kubernetes: { enabled: 'x' } });
  const code = 'ERR_PROFILE_INVALID';
  const places = [{ ...place('a'), own: true as const }];
  const administrator = /^Ask your administrator/;
  await expect(read('a')).rejects.toMatchObject({ code, advice: expect.stringMatching(administrator) });
  await expect(readPolicies({ places, programs: policyPrograms() }, HOST)).rejects.toMatchObject({
    code,
    message: expect.stringContaining(place('a').locked),
    details: [expect.stringContaining("Error for field 'kubernetes.enabled'")],
    advice: 'Fix or remove this deployment profile, which is your own; the service does not start until then.',
  });
});

test('every bad field is reported', async () => {
  write('a', 'locked', { version: 19, kubernetes: { version: ['a'], port: 'x' }, WSL: { integrations: { d: true } } });
  const error = await read('a').catch((thrown: unknown) => thrown);
  const details = (error as { details: string[] }).details.join('\n');
  for (const path of ['kubernetes.version', 'kubernetes.port', 'WSL.integrations']) {
    expect(details).toContain(`Error for field '${path}': `);
  }
});

test('a value of the wrong form is refused with the expected form', async () => {
  write('a', 'defaults', {
    version: 19,
    kubernetes: { port: 0 },
    experimental: { virtualMachine: { diskSize: 'lots' } },
    containerEngine: { name: 'x' },
  });
  await expect(read('a')).rejects.toMatchObject({
    details: [
      `Error for field 'kubernetes.port': Invalid value for "kubernetes.port": <0>; expected an integer from 1 to 65535`,
      `Error for field 'experimental.virtualMachine.diskSize': Invalid value for "experimental.virtualMachine.diskSize": <"lots">; expected a size such as "100GiB"`,
      `Error for field 'containerEngine.name': Invalid value for "containerEngine.name": <"x">; must be one of ["containerd","moby","docker"]`,
    ],
  });
});

test('a policy may ask for a smaller disk than the default', async () => {
  write('a', 'defaults', { version: 19, experimental: { virtualMachine: { diskSize: '20GiB' } } });
  expect((await read('a')).defaults?.settings).toMatchObject({
    experimental: { virtualMachine: { diskSize: '20GiB' } },
  });
});

test('an unreadable profile fails the start', async () => {
  mkdirSync(place('a').locked, { recursive: true });
  await expect(read('a')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringContaining('it is a directory'),
  });
});

test('locked fields are enforced at every start and cannot be changed; defaults apply once', async () => {
  const locked = write('a', 'locked', { version: 19, containerEngine: { name: 'containerd' } });
  const defaults = write('a', 'defaults', {
    version: 19,
    images: { namespace: 'team' },
    containerEngine: { name: 'moby' },
  });
  const home = temporaryDirectory();
  const first = await startService({ home, power: 'stopped', policies: { locked, defaults } });
  expect((await first.client.settings()).settings).toMatchObject({
    containerEngine: { name: 'containerd' },
    images: { namespace: 'team' },
  });
  expect(await first.client.locked()).toEqual({ version: true, containerEngine: { name: true } });
  await expect(first.client.putSettings({ version: 19, containerEngine: { name: 'moby' } })).rejects.toThrow(
    'field "containerEngine.name" is locked',
  );
  await first.client.putSettings({ version: 19, images: { namespace: 'mine' } });
  await first.service.stop('enough');

  write('a', 'locked', { version: 19, kubernetes: { enabled: false } });
  const second = await startService({ home, policies: { locked, defaults } });
  expect((await second.client.settings()).settings).toMatchObject({
    containerEngine: { name: 'containerd' },
    images: { namespace: 'mine' },
    kubernetes: { enabled: false },
  });
  const plan = await second.client.plan({ settings: { kubernetes: { enabled: true } }, state: 'unmanaged', prune: [] });
  expect(plan.changes[0]?.blocked?.message).toContain(locked);
});

test('an argument of a start for a locked field is refused as locked, whatever its value is', async () => {
  const locked = write('a', 'locked', {
    version: 19,
    kubernetes: { version: '1.30.2' },
    images: { namespace: 'team' },
  });
  const settings = { kubernetes: { version: 'karl' }, images: { namespace: 7 } };
  const refused = startService({ power: 'stopped', policies: { locked }, settings });
  await expect(refused).rejects.toThrow('field "kubernetes.version" is locked');
  await expect(refused).rejects.toThrow('field "images.namespace" is locked');
  await expect(refused).rejects.not.toThrow('not found');
  // The value in force is no change.
  await startService({ power: 'stopped', policies: { locked }, settings: { images: { namespace: 'team' } } });
});

test('a bad profile fails the start before any file is changed', async () => {
  const locked = write('a', 'locked', '{');
  const home = temporaryDirectory();
  await expect(startService({ home, policies: { locked } })).rejects.toMatchObject({ code: 'ERR_PROFILE_INVALID' });
  const { client } = await startService({ home, power: 'stopped' });
  expect((await client.status()).notices).toEqual([]);
});

test('an oversized profile, or one that is not a file, is refused before it is read', async () => {
  const deep = (levels: number) => `{"version":19,"x":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  write('a', 'locked', deep(50));
  expect((await read('a')).warnings).toHaveLength(1);
  const path = write('a', 'locked', deep(5000));
  await expect(read('a')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: `Error parsing deployment profile from ${path}: it nests deeper than 100 levels`,
  });
  write('a', 'locked', `{"version":19,"x":"${'x'.repeat(16 * 1024 * 1024)}"}`);
  await expect(read('a')).rejects.toThrow('it has more than 16 MiB, which is the most that is read');
  writeFileSync(path, Buffer.from([0x7b, 0xff, 0x7d]));
  await expect(read('a')).rejects.toThrow('it is not UTF-8');
});

test.skipIf(process.platform === 'win32')('a FIFO does not block the start', async () => {
  mkdirSync(join(directory, 'a'));
  await run(['mkfifo', place('a').locked]);
  await expect(read('a')).rejects.toThrow('it is not a file');
});

test('a link to a profile is followed; a dangling one is not a missing profile', async () => {
  const target = write('real', 'locked', { version: 19, images: { namespace: 'x' } });
  mkdirSync(join(directory, 'a'));
  symlinkSync(target, place('a').locked);
  expect((await read('a')).locked?.settings).toEqual({ version: 19, images: { namespace: 'x' } });
  rmSync(target);
  await expect(read('a')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: `could not read the deployment profile ${place('a').locked}: it is a dangling symbolic link`,
    advice: expect.stringContaining('administrator'),
  });
});

test('a duplicate key is refused with its line', async () => {
  const path = write('a', 'locked', '{"version":19,\n"kubernetes":{"enabled":true,\n"enabled":false}}');
  await expect(read('a')).rejects.toMatchObject({
    message: `Error parsing deployment profile from ${path}: it has mistakes`,
    details: [expect.stringContaining(`${path}:3:1: `)],
  });
});

test('invalid JSON is reported with its position', async () => {
  const path = write('a', 'locked', '{\n  "version": 19,\n  "images": {},\n}');
  await expect(read('a')).rejects.toMatchObject({
    message: `Error parsing deployment profile from ${path}: it is not JSON`,
    details: [`${path}:4:1: a "," comes before the "}"`],
  });
});

test('a byte order mark is accepted', async () => {
  write('a', 'locked', `\uFEFF${JSON.stringify({ version: 19, images: { namespace: 'x' } })}`);
  expect((await read('a')).locked?.version).toBe(19);
});

test('text in place of a boolean or number is a wrong type, and so is null', async () => {
  const path = write('a', 'defaults', {
    version: 19,
    kubernetes: { enabled: 'true', port: '6443', version: ['strawberries', 'limes'] },
    containerEngine: null,
    images: { namespace: null },
    WSL: 7,
    diagnostics: { mutedChecks: { X: 'yes' } },
    experimental: { virtualMachine: { proxy: { password: 1 } } },
  });
  await expect(read('a')).rejects.toMatchObject({
    message: `Error in deployment file ${path}:`,
    details: [
      `Error for field 'kubernetes.enabled': expecting value of type boolean, got a string "true"`,
      `Error for field 'kubernetes.port': expecting value of type number, got a string "6443"`,
      `Error for field 'kubernetes.version': expecting value of type string, got an array ["strawberries","limes"]`,
      `Error for field 'containerEngine': expecting value of type object, got null`,
      `Error for field 'images.namespace': expecting value of type string, got null`,
      `Error for field 'WSL': expecting value of type object, got a number 7`,
      `Error for field 'diagnostics.mutedChecks.X': expecting value of type boolean, got a string "yes"`,
      expect.stringMatching(/^Error for field 'experimental\.virtualMachine\.proxy\.password': /),
    ],
  });
  const error = await read('a').catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ details: { length: 8 } });
});

test('a bad field of an older version is reported as it was written', async () => {
  write('a', 'locked', { version: 4, kubernetes: { memoryInGB: 'many', containerEngine: 'podman' } });
  await expect(read('a')).rejects.toMatchObject({
    details: [
      `Error for field 'kubernetes.containerEngine': Invalid value for "containerEngine.name": <"podman">; must be one of ["containerd","moby","docker"]`,
      `Error for field 'kubernetes.memoryInGB': expecting value of type number, got a string "many"`,
    ],
  });
});

test('a locked cluster version must be a version; an invalid one in a defaults profile is ignored', async () => {
  const settings = { version: 19, kubernetes: { version: 'NattyBo' } };
  const path = write('a', 'locked', settings);
  await expect(read('a')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: `Locked kubernetes version 'NattyBo' isn't a valid version. (${path})`,
  });
  const defaults = write('b', 'defaults', settings);
  expect(await read('b')).toMatchObject({
    defaults: { settings: { version: 19 } },
    warnings: [`${defaults}: kubernetes.version "NattyBo" is not a version; the default is used.`],
  });
});

test('a locked cluster version must be available where the cluster is on, in any spelling', async () => {
  const locked = (version: string, enabled = true) =>
    write('a', 'locked', { version: 19, kubernetes: { version, enabled } });
  await expect(startService({ policies: { locked: locked('v1.2.3') } })).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: `Locked kubernetes version '1.2.3' isn't available. (${place('a').locked})`,
    details: [expect.stringContaining('Available are 1.')],
  });
  const off = await startService({ power: 'stopped', policies: { locked: locked('1.2.3', false) } });
  expect((await off.client.settings()).settings).toMatchObject({ kubernetes: { version: '1.2.3' } });
  const on = await startService({ power: 'stopped', policies: { locked: locked('v1.30.2+k3s1') } });
  expect((await on.client.settings()).settings).toMatchObject({ kubernetes: { version: '1.30.2', enabled: true } });
});

test('an unavailable default cluster version is replaced by the choice of the service', async () => {
  const defaults = write('a', 'defaults', {
    version: 19,
    kubernetes: { version: '1.2.3' },
    images: { namespace: 'x' },
  });
  const { client } = await startService({ power: 'stopped', policies: { defaults } });
  expect((await client.settings()).settings).toMatchObject({ kubernetes: { version: '' }, images: { namespace: 'x' } });
  expect((await client.status()).notices).toEqual([
    `${defaults}: kubernetes.version 1.2.3 is not available; the default is used.`,
  ]);
});

test('the status lists profiles only when there are any', async () => {
  const locked = write('a', 'locked', { version: 19, images: { namespace: 'x' } });
  const defaults = write('a', 'defaults', { version: 19, images: { namespace: 'y' } });
  const { client } = await startService({ power: 'stopped', policies: { locked, defaults } });
  expect((await client.status()).policies).toEqual({ lockedBy: locked, defaultsBy: defaults });
  const none = await startService({ power: 'stopped' });
  expect(await none.client.status()).not.toHaveProperty('policies');
});

test('removing a lock leaves an ordinary value', async () => {
  const locked = write('a', 'locked', { version: 19, images: { namespace: 'x' } });
  const first = await startService({ power: 'stopped', policies: { locked } });
  await first.service.stop('enough');
  const second = await startService({ home: first.home });
  expect(await second.client.locked()).toEqual({});
  expect((await second.client.settings()).settings).toMatchObject({ images: { namespace: 'x' } });
  await second.client.putSettings({ version: 19, images: { namespace: 'mine' } });
});

test.runIf(process.platform !== 'win32').each([
  ['a file that all may write', 'a/locked.json', 0o666],
  ['a file in a directory that all may write', 'a', 0o777],
  ['no file in a directory that all may write', 'a', 0o777, 'removed'],
])('%s fails the start, with its owner, its mode and the command that fixes it', async (_name, at, mode, removed?) => {
  const file = write('a', 'locked', { version: 19, images: { namespace: 'x' } });
  if (removed) rmSync(file);
  const exposed = join(directory, at);
  chmodSync(exposed, mode);
  await expect(read('a')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringMatching(
      new RegExp(
        `the deployment profile .* cannot be trusted: ${exposed} can be written by other users \\(owner \\S+, mode 0${mode.toString(8)}\\)`,
      ),
    ),
    details: [expect.stringContaining(`chmod go-w ${exposed}`)],
  });
  chmodSync(exposed, mode & 0o755);
  await expect(read('a')).resolves.toMatchObject(removed ? {} : { locked: { source: file } });
});

test.runIf(process.getuid?.() === 0)(
  'a file of another user is neither a system profile nor one of this user',
  async () => {
    const file = write('a', 'locked', { version: 19, images: { namespace: 'x' } });
    chownSync(file, 65534, 65534);
    for (const whose of [{ system: true as const }, { own: true as const }, {}]) {
      await expect(
        readPolicies({ places: [{ ...place('a'), ...whose }], programs: policyPrograms() }, HOST),
      ).rejects.toMatchObject({
        code: 'ERR_PROFILE_INVALID',
        message: expect.stringContaining(`${file} belongs to another user (owner nobody, mode 0644`),
        details: [expect.stringContaining('chown ')],
      });
    }
  },
);
