import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Io } from '../../cli/command.ts';
import { policyPrograms } from '../../profiles/policies/places.ts';
import { rdctl, type Stage } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const LOCKED = {
  version: 10,
  containerEngine: { name: 'docker', allowedImages: { enabled: true, patterns: ['a"b\\c', 'é😀'] } },
  kubernetes: { enabled: false },
};
const DEFAULTS = { version: 19, kubernetes: { enabled: true, port: 6444 }, imags: { showAll: true } };

let cwd = '';
beforeEach(() => {
  cwd = temporaryDirectory();
});

const file = (name: string, content: unknown) =>
  writeFileSync(join(cwd, name), Buffer.isBuffer(content) ? content : JSON.stringify(content));
const read = (name: string) => readFileSync(join(cwd, name), 'utf8');
const importProfile = (argv: readonly string[], stage: Stage = {}) =>
  rdctl(['import-profile', ...argv], { cwd, env: {}, ...stage });

const PROFILE = {
  apiVersion: 'rdctl/v1',
  kind: 'Profile',
  settings: {
    version: 19,
    containerEngine: { allowedImages: LOCKED.containerEngine.allowedImages, name: 'moby' },
    kubernetes: { port: 6444, enabled: false },
    experimental: { containerEngine: { webAssembly: { enabled: false } } },
  },
  locked: {
    containerEngine: { allowedImages: { enabled: true, patterns: true }, name: true },
    kubernetes: { enabled: true },
    experimental: { containerEngine: { webAssembly: { enabled: true } } },
  },
  state: 'unmanaged',
};
const REPORT = `4 kept, 3 changed, 2 lost
  ~ version (locked): migrated from 10 to 19
  ~ containerEngine.name (locked): it is written in canonical form
  ~ experimental.containerEngine.webAssembly.enabled (locked): the application adds it to a locked profile of this version
  - kubernetes.enabled (defaults): the locked profile has the setting
  - imags (defaults): it is not a setting; did you mean images?
`;

describe('both parts become one profile', () => {
  beforeEach(() => {
    file('locked.json', LOCKED);
    file('defaults.json', DEFAULTS);
  });

  test('writes JSON, with a report on stderr that starts with counts', async () => {
    const { exit, out, err } = await importProfile(['locked.json', 'defaults.json', '-o', 'json']);
    expect({ exit, err }).toEqual({ exit: 0, err: REPORT });
    expect(JSON.parse(out)).toEqual(PROFILE);
  });

  test('writes YAML with the same meaning, and it is valid', async () => {
    const { exit, err } = await importProfile(['defaults.json', 'locked.json', '--out-file', 'team.yaml']);
    expect(exit).toBe(0);
    expect(err).toBe(`${REPORT}Wrote team.yaml. Check it with: rdctl validate team.yaml\n`);
    expect(read('team.yaml')).toMatch(
      /^# yaml-language-server: \$schema=.*\n# Written by `rdctl import-profile` from:\n# {3}defaults\.json\n/,
    );
    expect(await rdctl(['validate', 'team.yaml'], { cwd, env: {} })).toMatchObject({ exit: 0 });
    const exported = (part: string) =>
      rdctl(['create-profile', '--output=json', '--input=team.yaml', `--part=${part}`], { cwd, env: {} });
    const [locked, defaults] = [await exported('locked'), await exported('defaults')];
    expect(JSON.parse(locked.out)).toEqual({
      ...PROFILE.settings,
      kubernetes: { enabled: false },
    });
    expect(JSON.parse(defaults.out)).toEqual({ version: 19, kubernetes: { port: 6444 } });
  });

  test('the report is complete, and contains no values', async () => {
    const { exit } = await importProfile(['locked.json', 'defaults.json', '--report', 'r.json']);
    expect(exit).toBe(0);
    const report = JSON.parse(read('r.json'));
    expect(report).toEqual({
      kind: 'ImportReport',
      formatVersion: 1,
      sources: [
        { source: 'locked.json', format: 'json', part: 'locked', version: 10 },
        { source: 'defaults.json', format: 'json', part: 'defaults', version: 19 },
      ],
      counts: { kept: 4, changed: 3, lost: 2 },
      kept: [
        { part: 'locked', path: 'containerEngine.allowedImages.enabled' },
        { part: 'locked', path: 'containerEngine.allowedImages.patterns' },
        { part: 'locked', path: 'kubernetes.enabled' },
        { part: 'defaults', path: 'kubernetes.port' },
      ],
      changed: expect.arrayContaining([
        { part: 'locked', path: 'version', from: 'version', reason: 'migrated from 10 to 19' },
      ]),
      lost: [
        { part: 'defaults', place: 'kubernetes.enabled', reason: 'the locked profile has the setting' },
        { part: 'defaults', place: 'imags', reason: 'it is not a setting; did you mean images?' },
      ],
      warnings: [],
    });
  });

  test('--strict writes the report but no profile', async () => {
    const argv = ['locked.json', 'defaults.json', '--strict', '--report', 'r.json', '--out-file', 'team.yaml'];
    const { exit, out, err } = await importProfile(argv);
    expect({ exit, out }).toEqual({ exit: 3, out: '' });
    expect(err).toContain('Error: 2 items were lost; no profile was written; the report is in r.json\n');
    expect(existsSync(join(cwd, 'team.yaml'))).toBe(false);
    expect(JSON.parse(read('r.json')).counts.lost).toBe(2);
    expect((await importProfile(argv.slice(0, 3))).err).toContain('Error: 2 items were lost; nothing was written\n');
    expect(await importProfile(['locked.json', '--strict'])).toMatchObject({ exit: 0 });
  });

  test('--part takes one of them', async () => {
    const { exit, out, err } = await importProfile(['locked.json', 'defaults.json', '--part=defaults', '-o=json']);
    expect(exit).toBe(0);
    expect(err).toContain('Note: locked.json was skipped because of --part defaults.\n');
    expect(JSON.parse(out)).toMatchObject({ settings: { kubernetes: { enabled: true, port: 6444 } }, locked: {} });
    expect(await importProfile(['locked.json', '--part', 'defaults'])).toMatchObject({
      exit: 3,
      err: expect.stringContaining(
        'Error: the input contains no defaults profile\nlocked.json is the locked profile\n',
      ),
    });
  });

  test('does not overwrite a file or create a directory', async () => {
    file('team.yaml', 'mine');
    const refused = await importProfile(['locked.json', '--out-file', 'team.yaml']);
    expect(refused).toMatchObject({ exit: 1, err: expect.stringContaining('already exists') });
    expect(read('team.yaml')).toBe('"mine"');
    expect(await importProfile(['locked.json', '--out-file', 'team.yaml', '--force'])).toMatchObject({ exit: 0 });
    expect(read('team.yaml')).toContain('kind: Profile');
    expect(await importProfile(['locked.json', '--out-file', 'none/team.yaml'])).toMatchObject({ exit: 1 });
  });
});

describe('which part a file is', () => {
  test('is locked by default, with a warning; --part overrides', async () => {
    file('x.json', { version: 19, images: { showAll: true } });
    const silent = await importProfile(['x.json', '-o', 'json']);
    expect(silent.err).toContain('Note: x.json does not indicate its part and is treated as locked;');
    expect(JSON.parse(silent.out).locked).toEqual({ images: { showAll: true } });
    const said = await importProfile(['x.json', '-o', 'json', '--part', 'defaults']);
    expect(said.err).toBe('1 kept, 0 changed, 0 lost\n');
    expect(JSON.parse(said.out).locked).toEqual({});
  });

  test('warns when the file name suggests another format', async () => {
    file('x.locked.plist', { version: 19, images: { showAll: true } });
    const { exit, err } = await importProfile(['x.locked.plist', '--strict']);
    expect({ exit, err }).toEqual({
      exit: 0,
      err: 'Note: x.locked.plist: its name says a property list, and it is JSON, which macOS would not read.\n1 kept, 0 changed, 0 lost\n',
    });
  });

  test('refuses two files of the same part', async () => {
    file('locked.json', LOCKED);
    file('my.locked.json', LOCKED);
    expect(await importProfile(['locked.json', 'my.locked.json'])).toMatchObject({
      exit: 3,
      err: expect.stringContaining('there are two locked profiles: locked.json and my.locked.json'),
    });
  });

  test('standard input', async () => {
    const stdin = JSON.stringify(LOCKED);
    expect(await importProfile(['-', '-o', 'json'], { stdin })).toMatchObject({
      exit: 0,
      err: expect.stringContaining('<stdin> does not indicate its part'),
    });
  });
});

describe('secrets', () => {
  const proxy = { enabled: true, address: 'proxy.example.com', password: 'hunter2', username: 'u' };
  const settings = { version: 19, experimental: { virtualMachine: { proxy } } };

  test.each(['yaml', 'json'])('appear in no output: %s', async (output) => {
    file('locked.json', settings);
    const argv = ['locked.json', '-o', output, '--report', 'r.json', '--verbose'];
    const { exit, out, err } = await importProfile(argv);
    expect(exit).toBe(0);
    expect(out + err + read('r.json')).not.toContain('hunter2');
    expect(out).toMatch(/"?fromEnv"?: "?PROXY_PASSWORD/);
    expect(err).toContain('~ experimental.virtualMachine.proxy.password (locked): it is a secret');
  });

  test('are read from a variable, which is reported with the next step', async () => {
    file('locked.json', settings);
    expect((await importProfile(['locked.json', '--out-file', 'team.yaml'])).err).toMatch(
      /\nWrote team\.yaml\. It reads a secret from PROXY_PASSWORD; with that set, check it with: rdctl validate team\.yaml\n$/,
    );
    const env = { PROXY_PASSWORD: 'hunter2' };
    expect(await rdctl(['validate', 'team.yaml'], { cwd, env })).toMatchObject({ exit: 0 });
  });

  test('do not appear when they have the wrong type, and references are not followed', async () => {
    file('locked.json', { ...settings, experimental: { virtualMachine: { proxy: { password: ['hunter2'] } } } });
    const { err, out } = await importProfile(['locked.json']);
    expect(out + err).not.toContain('hunter2');
    expect(err).toContain('- experimental.virtualMachine.proxy.password');
    const reference = { password: { fromEnv: 'SECRET' } };
    file('locked.json', { ...settings, experimental: { virtualMachine: { proxy: reference } } });
    const followed = await importProfile(['locked.json'], { env: { SECRET: 'hunter2' } });
    expect(followed.err).toContain('- experimental.virtualMachine.proxy.password');
    expect(followed.out).not.toContain('password');
  });
});

test.each(['"10"', 'hex:0a,00', 'hex(2):31,00,30,00,00,00', 'hex(b):0a,00,00,00,00,00,00,00', 'hex(4):0a'])(
  'a registry file with the version %s is not read as the newest version',
  async (version) => {
    const key = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\Locked';
    const lines = ['Windows Registry Editor Version 5.00', `[${key}]`, `"version"=${version}`, ''];
    file('all.reg', Buffer.from(lines.join('\r\n')));
    expect(await importProfile(['all.reg'])).toMatchObject({
      exit: 3,
      out: '',
      err: expect.stringContaining(
        `all.reg: ${key}: version is not a settings version (/version); expected an integer`,
      ),
    });
  },
);

test('what a registry file loses is reported with its part', async () => {
  const key = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop';
  const lines = [`[${key}]`, '"stray"=dword:1', `[${key}\\Locked]`, '"version"=dword:13', '"typo"=dword:1', ''];
  file('all.reg', Buffer.from(['Windows Registry Editor Version 5.00', ...lines].join('\r\n')));
  const { err } = await importProfile(['all.reg', '--report', 'r.json']);
  expect(err).toContain(`  - ${key}\\Locked: typo: it is not a setting\n`);
  expect(JSON.parse(read('r.json')).lost).toMatchObject([
    { part: 'locked', place: `${key}\\Locked: typo` },
    { part: null, place: `${key}: stray` },
  ]);
});

test('a report does not overwrite an input behind a link', async () => {
  const text = JSON.stringify({ version: 19, telemetry: { enabled: false } });
  file('locked.json', Buffer.from(text));
  symlinkSync('locked.json', join(cwd, 'link.json'));
  expect(await importProfile(['locked.json', '--report', 'link.json'])).toMatchObject({
    exit: 1,
    out: '',
    err: expect.stringContaining('--report link.json names an input or output file'),
  });
  expect(read('locked.json')).toBe(text);
});

describe('refusals', () => {
  test.each<[string, unknown, number, RegExp]>([
    ['an empty file', Buffer.from(''), 3, /^Error: locked\.json is empty\n$/],
    ['YAML', Buffer.from('version: 19\n'), 3, /is not a deployment file[\s\S]*rdctl validate/],
    ['a profile document', PROFILE, 3, /is not a deployment file/],
    ['JSON with a mistake', Buffer.from('{\n"version": 19,\n}'), 3, /it is not JSON\nlocked\.json:3:1: a ","/],
    ['JSON that is too deep', Buffer.from(`{"a":${'['.repeat(200)}`), 3, /nests deeper than 100 levels/],
    ['a truncated list', Buffer.from('<plist><dict>'), 3, /<dict> is not closed/],
    ['a newer version', { version: 20 }, 3, /20 is newer than 19/],
    ['a version that is none', { version: 'x' }, 3, /version is not a settings version/],
    ['16 MiB and one byte', Buffer.alloc(16 * 1024 * 1024 + 1, 0x20), 3, /locked\.json has more than 16 MiB/],
  ])('%s', async (_, content, exit, message) => {
    file('locked.json', content);
    const outcome = await importProfile(['locked.json']);
    expect(outcome).toMatchObject({ exit, out: '', err: expect.stringMatching(message) });
  });

  test('a directory', async () => {
    mkdirSync(join(cwd, 'locked.json'));
    expect(await importProfile(['locked.json'])).toMatchObject({
      exit: 1,
      err: expect.stringMatching(/it is a directory/),
    });
  });

  test.each([
    [[], 'no FILE or --from-system specified'],
    [['x', '--from-system'], 'cannot be used together'],
    [['-', '-'], 'standard input (-) can be specified only once'],
    [['x', '--force'], '--force requires'],
    [['x', '--report', './x'], '--report ./x names an input or output file'],
    [['x', '--out-file', 'y', '--report', 'y'], '--report y names an input or output file'],
    [['x', '-o', 'xml'], 'must be one of yaml, json'],
  ])('%j', async (argv, message) => {
    expect(await importProfile(argv)).toMatchObject({ exit: 1, out: '', err: expect.stringContaining(message) });
  });
});

test('names from a file are escaped on the terminal and in the text', async () => {
  const name = 'a\u001b[2J\nkind: x\u202e';
  file('locked.json', { version: 19, [name]: 1, diagnostics: { mutedChecks: { [name]: true } } });
  const { out, err } = await importProfile(['locked.json']);
  expect(err).toBe('1 kept, 0 changed, 1 lost\n  - a [2J kind: x  (locked): it is not a setting\n');
  expect(Array.from('\u001b\u202e').filter((sign) => out.includes(sign))).toEqual([]);
  expect(await rdctl(['validate', '-'], { stdin: out, env: {} })).toMatchObject({ exit: 0 });
});

test('of many losses, fifty are shown and the report has all', async () => {
  const many = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`name${index}`, index]));
  file('locked.json', { version: 19, ...many });
  const { err } = await importProfile(['locked.json', '--report', 'r.json']);
  expect(err.split('\n')).toHaveLength(53);
  expect(err).toContain('  … and 2950 more; use --report FILE to see all\n');
  expect(JSON.parse(read('r.json')).lost).toHaveLength(3000);
});

describe('--from-system', () => {
  const onSystem = (platform: 'linux' | 'darwin' | 'win32', policies: NonNullable<Io['policies']>, ...more: string[]) =>
    importProfile(['--from-system', '-o', 'json', ...more], { platform, policies });

  test('reads the files of Linux, and of macOS in either form', async () => {
    file('locked.json', LOCKED);
    file('defaults.json', DEFAULTS);
    const programs = policyPrograms(['/nonexistent']);
    const json = { format: 'json', locked: join(cwd, 'locked.json'), defaults: join(cwd, 'defaults.json') } as const;
    const linux = await onSystem('linux', { places: [json], programs });
    expect(JSON.parse(linux.out)).toEqual(PROFILE);
    const golden = 'test/golden/profiles/import/values';
    const plist = { format: 'plist', locked: `${golden}.binary.plist`, defaults: `${golden}.none` } as const;
    const mac = await onSystem('darwin', { places: [{ ...plist, locked: join(cwd, 'none') }, plist], programs });
    expect(JSON.parse(mac.out).settings.kubernetes).toEqual({ version: '1.30.2', port: 6443, enabled: false });
    expect(mac.err).toContain('- numbers (locked): it is not a setting');
  });

  test('does not skip one that cannot be read', async () => {
    mkdirSync(join(cwd, 'locked.json'));
    file('defaults.json', DEFAULTS);
    const place = { format: 'json', locked: join(cwd, 'locked.json'), defaults: join(cwd, 'defaults.json') } as const;
    expect(await onSystem('linux', { places: [place], programs: policyPrograms() })).toMatchObject({
      exit: 3,
      err: expect.stringContaining('it is a directory'),
    });
  });
});
