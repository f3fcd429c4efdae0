import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { type AnyFileContext, loadAnyFile } from '../../profiles/document/comparison.ts';
import { encodeRegistryFile } from '../../profiles/formats/format.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const SETTINGS = '{"version": 10, "kubernetes": {"enabled": false}, "imags": {}}';
const PROFILE = `apiVersion: rdctl/v1
kind: Profile
settings: { version: 10, kubernetes: { enabled: false }, experimental: { virtualMachine: { type: vz } } }
locked: { kubernetes: true }
`;
const REG = `Windows Registry Editor Version 5.00

[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\Locked]
"version"=dword:13
[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\Locked\\kubernetes]
"enabled"=dword:0
`;

let cwd = '';
beforeEach(() => {
  cwd = temporaryDirectory();
});

function load(name: string, bytes: string | Uint8Array, more: Partial<AnyFileContext> = {}) {
  writeFileSync(join(cwd, name), bytes);
  return loadAnyFile(name, {
    cwd,
    env: {},
    platform: 'darwin',
    arch: 'arm64',
    readStdin: async () => Buffer.from(bytes),
    ...more,
  });
}

test('a Linux deployment file is recognized by name: unknown settings are ignored, and it is locked', async () => {
  const file = await load('locked.json', SETTINGS);
  expect(file).toMatchObject({
    label: 'locked.json',
    format: 'json',
    form: 'deployment',
    platform: 'linux',
    findings: [],
    warnings: ['locked.json: left out: imags: it is not a setting; did you mean images?'],
    parts: [{ part: 'locked', source: 'locked.json', settings: JSON.parse(SETTINGS) }],
    joined: { locked: ['kubernetes.enabled', 'experimental.containerEngine.webAssembly.enabled'] },
  });
});

test('under another name it is bare settings: unknown names are errors with their position', async () => {
  const file = await load('settings.json', SETTINGS);
  expect(file).toMatchObject({ format: 'json', form: 'settings', joined: { locked: [] } });
  expect(file.findings).toMatchObject([{ line: 1, message: 'unknown setting "imags"' }]);
  expect(file.document?.parsed.file).toBe('settings.json');
  expect(file).not.toHaveProperty('platform');
});

test('standard input is what the user says', async () => {
  expect(await load('x', SETTINGS, { part: 'defaults' })).toMatchObject({ form: 'deployment', joined: { locked: [] } });
  writeFileSync(join(cwd, 'x'), '');
  const context = { cwd, env: {}, platform: 'linux', arch: 'x64', part: 'locked' } as const;
  const file = await loadAnyFile('-', { ...context, readStdin: async () => Buffer.from(SETTINGS) });
  expect(file).toMatchObject({ label: '<stdin>', parts: [{ part: 'locked' }] });
});

test('a profile has its settings as they were written, and the locked ones', async () => {
  const file = await load('team.yaml', PROFILE);
  expect(file).toMatchObject({
    format: 'yaml',
    form: 'profile',
    findings: [],
    joined: {
      settings: { version: 19, kubernetes: { enabled: false }, virtualMachine: { type: 'vz' } },
      locked: ['kubernetes.enabled'],
    },
  });
  expect(file.parts).toEqual([
    {
      source: 'team.yaml',
      settings: { version: 10, kubernetes: { enabled: false }, experimental: { virtualMachine: { type: 'vz' } } },
      lost: [],
    },
  ]);
});

test('a secret that cannot be read here is not an error', async () => {
  const reference = (of: string) => `{ version: 19, experimental: { virtualMachine: { proxy: { password: ${of} } } } }`;
  const path = 'experimental.virtualMachine.proxy.password';
  const file = await load('team.yaml', reference('{ fromEnv: NOT_SET }'));
  expect(file).toMatchObject({ findings: [], joined: { settings: { version: 19 } } });
  expect(file.unread).toEqual([
    { path, reference: { fromEnv: 'NOT_SET' }, reason: 'the environment variable NOT_SET is not set' },
  ]);
  expect((await load('team.yaml', reference('{ fromFile: none }'))).unread).toMatchObject([{ path }]);
  const known = await load('team.yaml', reference('{ fromEnv: SET }'), { env: { SET: 'x' } });
  expect(known.unread).toEqual([]);
  const wrong = await load('team.yaml', reference('{ fromEnv: 3 }'));
  expect(wrong.findings).toHaveLength(1);
});

test.each([
  ['in UTF-8', Buffer.from(REG)],
  ['in UTF-16', encodeRegistryFile(REG, 'utf-16le')],
])('a registry file %s', async (_, bytes) => {
  expect(await load('whatever', bytes)).toMatchObject({
    format: 'reg',
    platform: 'win32',
    parts: [{ part: 'locked', settings: { version: 19, kubernetes: { enabled: false } } }],
    joined: { locked: ['kubernetes.enabled'] },
  });
});

test.each(['plain', 'signed'])('a configuration profile, %s', async (name) => {
  const file = await load('x', readFileSync(`test/golden/profiles/import/${name}.mobileconfig`));
  expect(file).toMatchObject({
    format: 'mobileconfig',
    platform: 'darwin',
    parts: [{ part: 'locked' }, { part: 'defaults' }],
    joined: { settings: { images: { namespace: 'team' } }, locked: ['kubernetes.enabled'] },
  });
});

test('a part without a version is read as the newest version, with a warning', async () => {
  const file = await load('x.reg', REG.replace('"version"=dword:13\n', ''));
  expect(file).toMatchObject({
    findings: [],
    warnings: [expect.stringContaining('version is missing: the application does not start with such a profile')],
    joined: { locked: ['kubernetes.enabled'] },
  });
});

test.each([
  ['ADMX', Buffer.from('<?xml version="1.0"?>\n<!-- x -->\n<policyDefinitions revision="1.0">')],
  ['ADML in UTF-16', Buffer.from('\ufeff<policyDefinitionResources revision="1.0">', 'utf16le')],
])('templates are reported as such: %s', async (_, bytes) => {
  await expect(load('RancherDesktop.admx', bytes)).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: 'RancherDesktop.admx contains templates for Group Policy (ADMX or ADML), not settings',
    advice: expect.stringContaining('Registry.pol'),
  });
});

describe('what cannot be read', () => {
  const context = { env: {}, platform: 'linux', arch: 'x64', readStdin: async () => Buffer.from('') } as const;

  test('a directory, and nothing', async () => {
    mkdirSync(join(cwd, 'locked.json'));
    for (const [name, reason] of [
      ['locked.json', 'it is a directory'],
      ['other', 'no such file or directory'],
    ] as const) {
      await expect(loadAnyFile(name, { cwd, ...context })).rejects.toMatchObject({
        code: 'ERR_IO',
        message: `${name} could not be read: ${reason}`,
      });
    }
  });

  test('more than 16 MiB in any format; 16 MiB of property list are read', async () => {
    const text = (size: number) => {
      const [head, tail] = ['<plist><dict><key>a</key><string>', '</string></dict></plist>'];
      return Buffer.from(`${head}${'x'.repeat(size - head.length - tail.length)}${tail}`);
    };
    const most = 16 * 1024 * 1024;
    await expect(load('a.plist', text(most + 1))).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: 'a.plist has more than 16 MiB, which is the most that is read',
    });
    const file = await load('a.plist', text(most));
    expect(String(file.parts[0]?.settings.a)).toHaveLength(most - 57);
  });

  test('YAML and JSON are limited to 1 MiB', async () => {
    const file = await load('team.yaml', `version: 19\n#${'x'.repeat(1024 * 1024)}\n`);
    expect(file.findings).toMatchObject([
      { message: 'the document has more than 1 MiB, which is the most that is read' },
    ]);
  });

  test.each(['', ' \n', '\ufeff'])('an empty file: %j', async (text) => {
    const file = await load('locked.json', text);
    expect(file.findings).toMatchObject([{ message: 'the document is empty' }]);
  });
});
