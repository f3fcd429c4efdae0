import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseRegistryFile } from '../../profiles/formats/reg.ts';
import { policyPlaces } from '../../profiles/policies/places.ts';
import { readPolicies } from '../../profiles/policies/read.ts';
import { answering, holding, type StandIn, standIn } from '../helpers/policy-programs.ts';

const HOST = { platform: 'win32', arch: 'x64' } as const;
const KEY = 'HKLM\\SOFTWARE\\Policies\\Rancher Desktop';
const USER = 'HKCU\\SOFTWARE\\Policies\\Rancher Desktop';
const OLDER = 'HKLM\\SOFTWARE\\Rancher Desktop\\Profile';

const read = ({ programs }: StandIn) =>
  readPolicies({ places: policyPlaces({ SystemRoot: 'C:\\Elsewhere' }, 'win32', ''), programs }, HOST);

/** What `reg query` prints for values of one profile: `path name TYPE data`; the path and the data may be empty. */
function printed(key: string, ...values: [path: string, name: string, type: string, data: string][]): string {
  const long = key.replace('HKLM', 'HKEY_LOCAL_MACHINE').replace('HKCU', 'HKEY_CURRENT_USER');
  return values
    .map(([path, name, type, data]) => `\r\n${long}\\${path}\r\n    ${name}    ${type}    ${data}\r\n`)
    .join('');
}

const query = holding;
const locked = (...values: [path: string, name: string, type: string, data: string][]) =>
  query(
    KEY,
    printed(
      KEY,
      ['Locked', 'version', 'REG_DWORD', '0x13'],
      ...values.map(([path, ...rest]): [string, string, string, string] => [`Locked\\${path}`, ...rest]),
    ),
  );

test('policies win over profiles of older releases, and the computer over the user', () => {
  const keys = policyPlaces({}, 'win32', 'C:\\Users\\u').map((place) => place.format === 'registry' && place.key);
  expect(keys).toEqual([KEY, USER, OLDER, 'HKCU\\SOFTWARE\\Rancher Desktop\\Profile']);
});

test('names in any case, every type, another language', async () => {
  const out = readFileSync('test/golden/policies/reg-query.txt', 'utf8');
  const stand = standIn(query(KEY, out));
  const { defaults, locked: policy, warnings } = await read(stand);
  expect(defaults).toEqual({
    source: `${KEY}\\Defaults`,
    version: 19,
    settings: { version: 19, images: { namespace: 'team' } },
  });
  expect(policy).toEqual({
    source: `${KEY}\\Locked`,
    version: 10,
    settings: {
      version: 19,
      application: { extensions: { allowed: { list: ['example/'] } } },
      containerEngine: {
        name: 'moby',
        allowedImages: { enabled: true, patterns: ['registry.example.com/*', 'busybox:1.36'] },
      },
      WSL: { integrations: { 'Ubuntu 22.04  LTS': true, Debian: false } },
      kubernetes: { version: '1.30.2', port: 6443 },
      experimental: {
        containerEngine: { webAssembly: { enabled: false } },
        virtualMachine: { proxy: { username: '', noproxy: [] } },
      },
    },
  });
  expect(warnings).toEqual([]);
  expect(stand.calls()).toEqual([
    ['query', KEY],
    ['export', KEY, expect.stringMatching(/key\.reg$/), '/y'],
  ]);
});

test('a profile of an older version may use older names', async () => {
  const stand = answering(
    query(
      KEY,
      printed(
        KEY,
        ['Locked', 'VERSION', 'REG_DWORD', '0x4'],
        ['Locked', 'Telemetry', 'REG_DWORD', '0x0'],
        ['Locked', 'updater', 'REG_DWORD', '0x1'],
        ['Locked\\Kubernetes', 'memoryingb', 'REG_DWORD', '0x4'],
        ['Locked\\Kubernetes', 'containerEngine', 'REG_SZ', 'docker'],
        ['Locked\\Kubernetes', 'suppressSudo', 'REG_DWORD', '0x0'],
        ['Locked\\Kubernetes', 'hostResolver', 'REG_DWORD', '0x1'],
        ['Locked\\Kubernetes\\WSLIntegrations', 'Ubuntu', 'REG_DWORD', '0x1'],
        ['Locked\\ContainerEngine\\imageAllowList', 'Enabled', 'REG_DWORD', '0x1'],
        ['Locked\\ContainerEngine\\imageAllowList', 'Patterns', 'REG_MULTI_SZ', 'a\\0b'],
      ),
    ),
  );
  // Two of them cannot be set on Windows, and are refused under their names in the registry.
  const error = await read(stand).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    message: `Error in deployment profiles: ${KEY}\\Locked`,
    details: [
      expect.stringContaining(`Error for field '${KEY}\\Locked\\kubernetes\\suppressSudo': `),
      expect.stringContaining(`Error for field '${KEY}\\Locked\\kubernetes\\memoryInGB': `),
    ],
  });
});

test('settings that have moved since are found', async () => {
  const stand = answering(
    query(
      KEY,
      printed(
        KEY,
        ['Defaults', 'version', 'REG_DWORD', '0x4'],
        ['Defaults', 'telemetry', 'REG_DWORD', '0x0'],
        ['Defaults', 'updater', 'REG_DWORD', '0x0'],
        ['Defaults\\kubernetes', 'containerEngine', 'REG_SZ', 'containerd'],
        ['Defaults\\kubernetes', 'hostResolver', 'REG_DWORD', '0x1'],
        ['Defaults\\kubernetes\\WSLIntegrations', 'Ubuntu', 'REG_DWORD', '0x1'],
        ['Locked', 'version', 'REG_DWORD', '0x6'],
        ['Locked\\extensions', 'example/ext:1.2', 'REG_DWORD', '0x1'],
        ['Locked\\application\\window', 'quitOnClose', 'REG_DWORD', '0x1'],
      ),
    ),
  );
  const { defaults, locked: policy, warnings } = await read(stand);
  expect(defaults).toMatchObject({
    version: 4,
    settings: {
      application: { telemetry: { enabled: false }, updater: { enabled: false } },
      containerEngine: { name: 'containerd' },
      WSL: { integrations: { Ubuntu: true } },
    },
  });
  expect(policy?.settings).toMatchObject({
    application: { extensions: { installed: { 'example/ext': '1.2' } }, window: { quitOnClose: true } },
  });
  expect(warnings).toEqual([]);
});

describe('types that do not match', () => {
  test.each([
    [
      'a text for a number',
      ['kubernetes', 'port', 'REG_SZ', '6443'],
      `kubernetes\\port': expecting value of type number, got a string '"6443"'`,
    ],
    [
      'a text for a switch',
      ['kubernetes', 'enabled', 'REG_SZ', 'true'],
      `kubernetes\\enabled': expecting value of type boolean, got a string '"true"'`,
    ],
    [
      'a number for a text',
      ['kubernetes', 'version', 'REG_DWORD', '0x1'],
      `kubernetes\\version': expecting value of type string, got a number '1'`,
    ],
    [
      'a list for a text',
      ['kubernetes', 'version', 'REG_MULTI_SZ', 'strawberries\\0limes'],
      `kubernetes\\version': expecting value of type string, got an array '["strawberries","limes"]'`,
    ],
    [
      'a number for a list',
      ['containerEngine\\allowedImages', 'patterns', 'REG_DWORD', '0x1'],
      `containerEngine\\allowedImages\\patterns': expecting value of type array, got a number '1'`,
    ],
    [
      'a large number',
      ['kubernetes', 'port', 'REG_QWORD', '0x192b'],
      `kubernetes\\port': expecting value of type number, got a value of type REG_QWORD`,
    ],
    [
      'a text with variables',
      ['kubernetes', 'version', 'REG_EXPAND_SZ', '%V%'],
      `kubernetes\\version': expecting value of type string, got a value of type REG_EXPAND_SZ`,
    ],
    [
      'bytes',
      ['kubernetes', 'version', 'REG_BINARY', '00FF'],
      `kubernetes\\version': expecting value of type string, got a value of type REG_BINARY`,
    ],
    [
      'a value for a section',
      ['', 'kubernetes', 'REG_SZ', 'x'],
      `kubernetes': expecting value of type object, got a string '"x"'`,
    ],
    [
      'a value for a map',
      ['WSL', 'integrations', 'REG_DWORD', '0x1'],
      `WSL\\integrations': expecting value of type object, got a number '1'`,
    ],
    [
      'a number for a switch of a map',
      ['WSL\\integrations', 'Ubuntu', 'REG_DWORD', '0x2'],
      `WSL\\integrations\\Ubuntu': expecting value of type boolean, got a number '2'`,
    ],
    [
      'a list in a map',
      ['WSL\\integrations', 'Ubuntu', 'REG_MULTI_SZ', 'a'],
      `WSL\\integrations\\Ubuntu': expecting value of type boolean, got an array '["a"]'`,
    ],
    [
      'a text for a switch of a map',
      ['WSL\\integrations', 'Ubuntu', 'REG_SZ', 'yes'],
      `WSL\\integrations\\Ubuntu': expecting value of type boolean, got a string '"yes"'`,
    ],
    [
      'a key for a value',
      ['kubernetes\\port', 'x', 'REG_DWORD', '0x1'],
      `kubernetes\\port': expecting value of type number, got a registry object`,
    ],
    [
      'a number for a secret',
      ['experimental\\virtualMachine\\proxy', 'password', 'REG_DWORD', '0x7'],
      `experimental\\virtualMachine\\proxy\\password': expecting value of type string, got a number '***'`,
    ],
  ] as const)('%s', async (_name, [path, name, type, data], line) => {
    const at: [string, string, string, string] = [path, name, type, data];
    const rows =
      path === ''
        ? query(KEY, printed(KEY, ['Locked', 'version', 'REG_DWORD', '0x13'], ['Locked', name, type, data]))
        : locked(at);
    await expect(read(answering(rows))).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: 'Error in registry settings:',
      details: [`Error for field '${KEY}\\Locked\\${line}`],
    });
  });

  test('all problems are reported, including those of the values', async () => {
    const rows = locked(
      ['kubernetes', 'port', 'REG_SZ', 'x'],
      ['kubernetes', 'enabled', 'REG_SZ', 'x'],
      ['containerEngine', 'name', 'REG_SZ', 'podman'],
    );
    const error = await read(answering(rows)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ details: { length: 3 } });
  });
});

test('unknown names are ignored with a notice, and so is a key in place of a list', async () => {
  const rows = locked(
    ['kubernetes', 'prot', 'REG_DWORD', '0x1'],
    ['nonsense\\below', 'x', 'REG_SZ', 'y'],
    ['containerEngine\\allowedImages\\patterns', 'x', 'REG_SZ', 'y'],
    ['images', 'namespace', 'REG_SZ', 'team'],
  );
  const { locked: policy, warnings } = await read(answering(rows));
  expect(policy?.settings).toEqual({ version: 19, images: { namespace: 'team' } });
  const names = ['kubernetes\\prot', 'nonsense', 'containerEngine\\allowedImages\\patterns'];
  expect(warnings).toEqual([
    `${KEY}\\Locked: unknown settings ${names.map((name) => JSON.stringify(`${KEY}\\Locked\\${name}`)).join(', ')} are ignored.`,
  ]);
});

test('a profile without a version is reported by its key', async () => {
  const rows = query(KEY, printed(KEY, ['Defaults\\images', 'namespace', 'REG_SZ', 'x']));
  await expect(read(answering(rows))).rejects.toMatchObject({
    message: `Invalid deployment: no version specified at ${KEY}\\Defaults. Add a version field to make it valid (current version is 19).`,
  });
});

test('the first location with a known value provides both; unknown values are no profile', async () => {
  const stand = answering({
    ...query(KEY, printed(KEY, ['Locked', 'nonsense', 'REG_SZ', 'x'], ['Other', 'version', 'REG_DWORD', '0x13'])),
    ...query(OLDER, printed(OLDER, ['locked', 'version', 'REG_DWORD', '0x13'])),
  });
  const { locked: policy, looked } = await read(stand);
  expect(policy?.source).toBe(`${OLDER}\\Locked`);
  expect(looked).toEqual([KEY, USER, OLDER]);
  expect(stand.calls().map(([verb, key]) => `${verb} ${key}`)).toEqual([
    `query ${KEY}`,
    `export ${KEY}`,
    `query ${USER}`,
    'query HKCU\\SOFTWARE\\Policies',
    `query ${OLDER}`,
    `export ${OLDER}`,
  ]);
});

test('an unreadable key fails the start; a missing one does not', async () => {
  const above = (name: string) => ({
    'query HKLM\\SOFTWARE\\Policies': { out: `\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\${name}\r\n` },
  });
  await expect(read(standIn(above('rancher desktop')))).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: `could not read the deployment profile ${KEY}: the registry key exists but cannot be read`,
  });
  expect(await read(standIn(above('Microsoft')))).toMatchObject({ warnings: [] });
});

test('a failure of reg.exe itself is not a missing key', async () => {
  await expect(read(standIn({ [`query ${KEY}`]: { status: 3, err: 'broken' } }))).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringMatching(/^could not read the deployment profile HKLM.* failed with exit status 3: broken$/),
  });
});

test('text in any language is read as it is', async () => {
  const rows = locked(
    ['images', 'namespace', 'REG_SZ', 'café "x" C:\\y'],
    ['WSL\\integrations', '(开发)', 'REG_DWORD', '0x1'],
  );
  expect((await read(answering(rows))).locked?.settings).toEqual({
    version: 19,
    images: { namespace: 'café "x" C:\\y' },
    WSL: { integrations: { '(开发)': true } },
  });
});

test.each([
  ['a line that is not understood', '"namespace"=what', 'expected a string'],
  ['a deletion', '"namespace"=-', 'it is a deletion'],
  ['a value that is set twice', '"version"=dword:12', 'the file sets this value twice'],
])('an export with %s fails the start', async (_name, line, reason) => {
  const file = Buffer.from(
    `Windows Registry Editor Version 5.00\r\n[${KEY}\\Locked]\r\n"version"=dword:13\r\n${line}\r\n`,
  );
  const stand = answering({ [`query ${KEY}`]: { out: KEY }, [`export ${KEY}`]: { file: file.toString('base64') } });
  await expect(read(stand)).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringContaining(`${KEY}: its export is not a registry file that can be read: line 4: ${reason}`),
  });
});

test('an export that fails is not a missing key', async () => {
  await expect(read(standIn({ [`query ${KEY}`]: { out: KEY } }))).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringMatching(/^could not read the deployment profile HKLM.* failed with exit status 1/),
  });
});

test('a file of the registry editor: comments, continuation lines, multi-line texts, every type', () => {
  const text = [
    'Windows Registry Editor Version 5.00',
    '; a comment',
    '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop]',
    '@="unnamed"',
    '"one"="a\\\\b\\"c"',
    '"lines"="first',
    'second"',
    '"many"=hex(7):61,00,\\',
    '  00,00,62,00,00,00,\\',
    '  00,00',
    '"none"=hex(7):00,00',
    '"empties"=hex(7):00,00,00,00,00,00',
    '"sz"=hex(1):78,00,00,00',
    '"be"=hex(5):00,00,00,07',
    '"le"=hex(4):07,00,00,00',
    '"quad"=hex(b):07,00,00,00,00,00,00,00',
    '"bytes"=hex:ff',
    '',
  ].join('\r\n');
  expect(parseRegistryFile(KEY, Buffer.from(text)).values).toEqual([
    { name: '', type: 'REG_SZ', data: 'unnamed' },
    { name: 'one', type: 'REG_SZ', data: 'a\\b"c' },
    { name: 'lines', type: 'REG_SZ', data: 'first\r\nsecond' },
    { name: 'many', type: 'REG_MULTI_SZ', data: ['a', 'b'] },
    { name: 'none', type: 'REG_MULTI_SZ', data: [] },
    { name: 'empties', type: 'REG_MULTI_SZ', data: ['', ''] },
    { name: 'sz', type: 'REG_SZ', data: 'x' },
    { name: 'be', type: 'REG_DWORD_BIG_ENDIAN', data: 7 },
    { name: 'le', type: 'REG_DWORD', data: 7 },
    { name: 'quad', type: 'REG_QWORD', data: undefined },
    { name: 'bytes', type: 'REG_BINARY', data: undefined },
  ]);
  for (const bad of ['"a"=dword:zz', '"a"=hex(7):6', 'nonsense', '"a"="open']) {
    const file = `Windows Registry Editor Version 5.00\n[${KEY}]\n${bad === '"a"=hex(7):6' ? '"a"=hex(7):6x' : bad}\n`;
    expect(() => parseRegistryFile(KEY, Buffer.from(file)), bad).toThrow();
  }
  expect(() => parseRegistryFile(KEY, Buffer.from('REGEDIT4\n'))).toThrow();
});
