import {
  chmodSync,
  lchownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NOTHING = { env: { RDCTL_HOME: '/nowhere' } };
const create = (...argv: string[]) => rdctl(['create-profile', ...argv], NOTHING);

const EXACTLY = 'must specify exactly one input format of "--input FILE|-", "--body|-b STRING", or "--from-settings"';

test('empty sections, null and unknown names leave no key', async () => {
  const body = '{"kubernetes":{},"images":null,"containers":{"showAll":null},"diagnostics":{"nothing":1}}';
  const { exit, out } = await create('--output', 'plist', '--body', body);
  expect(exit).toBe(0);
  expect([...String(out).matchAll(/<key>(.*?)<\/key>/g)].map((match) => match[1])).toEqual(['version']);
});

describe('refuses bad usage, in this order', () => {
  test.each<[string[], string, boolean]>([
    [['x'], 'unknown command "x" for "rdctl create-profile"', true],
    [[], 'an "--output FORMAT" option of either "plist" or "reg" must be specified', true],
    [
      ['--output', 'cabbage'],
      'received unrecognized "--output FORMAT" option of "cabbage"; "plist" or "reg" must be specified',
      true,
    ],
    [['--output=REG', '-b', '{}'], 'received unrecognized "--output FORMAT" option of "REG"', true],
    [['--output', 'reg'], `no input format specified: ${EXACTLY}`, true],
    [['--output', 'reg', '--input', '', '--body', ''], `no input format specified: ${EXACTLY}`, true],
    [['--output', 'reg', '-b', '{}', '--from-settings'], `too many input formats specified: ${EXACTLY}`, true],
    [['--output', 'reg', '-b', '{}', '--input', 'x'], `too many input formats specified: ${EXACTLY}`, true],
    [
      ['--output', 'plist', '-b', '{}', '--hive', 'hklm'],
      `registry hive and type can't be specified with "plist"`,
      true,
    ],
    [
      ['--output', 'plist', '-b', '{}', '--type=locked'],
      `registry hive and type can't be specified with "plist"`,
      true,
    ],
    [
      ['--output', 'reg', '-b', '{}', '--hive', 'stuff'],
      'invalid registry hive of "stuff" specified, must be "hklm"',
      true,
    ],
    [
      ['--output', 'reg', '-b', '{}', '--hive', 'constructor'],
      'invalid registry hive of "constructor" specified',
      true,
    ],
    [
      ['--output', 'reg', '-b', '{}', '--type', 'ruff'],
      'invalid registry type of "ruff" specified, must be "defaults"',
      true,
    ],
    [['--output', 'json', '-b', '{}', '--type=locked'], `registry hive and type can't be specified with "json"`, true],
    [['--output', 'reg', '-b', '{}', '--part=locked'], `--part can't be specified with "reg"`, true],
    [['--output', 'plist', '-b', '{}', '--part=both'], 'invalid part of "both" specified, must be "locked"', true],
    [['--output', 'plist', '-b', '{}', '--encoding=utf-8'], `--encoding can't be specified with "plist"`, true],
    [['--output', 'reg', '-b', '{}', '--encoding=latin1'], 'invalid encoding of "latin1" specified, must be', true],
    [
      ['--output', 'reg', '-b', '{}', '--out-file=a', '--out-dir=b'],
      '--out-file and --out-dir cannot be used together',
      true,
    ],
    [['--output', 'admx'], '"admx" is more than one file: an "--out-dir DIR" option must be specified', true],
    [['--output', 'admx', '--out-dir', '/no/such', '-b', '{}'], `--body can't be specified with "admx"`, true],
    [['--output', 'admx', '--out-dir', '/no/such/x'], 'could not create the directory /no/such/x: ', false],
    [['--output', 'json', '-b', '{}', '--only=kubernetes.prt'], '--only "kubernetes.prt": no such', true],
    [['--output', 'reg', '--input', '/no/such/file'], 'open /no/such/file: no such file or directory', false],
    [['--output', 'reg', '--input', '/no/\u001b[2Jfile'], 'open /no/\\u001b[2Jfile: no such file or directory', false],
    [['--output', 'reg', '-b', '{"password":"hush"'], 'error in json: --body:1:19: ', false],
    [['--output', 'reg', '-b', '{} trailing'], 'error in json: --body:1:4: ', false],
    [['--output', 'reg', '-b', 'a: {'], 'error in json: --body:1:5: as YAML, ', false],
    [['--output', 'reg', '-b', 'this is not JSON'], 'error in json: --body: the settings must be an object', false],
    [['--output', 'reg', '--input', '.'], 'open .: is a directory', false],
    [['--output', 'reg', '-b', '[]'], 'error in json: --body: the settings must be an object', false],
    [['--output', 'reg', '-b', 'null'], 'error in json: --body: the settings must be an object', false],
    [
      ['--output', 'reg', '-b', '['.repeat(200)],
      'error in json: --body:1:101: the document is nested too deeply',
      false,
    ],
    [
      ['--output', 'reg', '-b', '{"kubernetes":{"enabled":1}}'],
      '1 error in --body; no profile was written.\n--body:1:26: "kubernetes.enabled" cannot be 1 ',
      false,
    ],
    [
      ['--output', 'plist', '-b', '{"version":"x"}'],
      '1 error in --body; no profile was written.\n--body:1:12: "x" is not a settings version ',
      false,
    ],
    [['--output', 'reg', '--from-settings'], 'failed to get connection info: open /nowhere/app-engine.json: ', false],
  ])('%j', async (argv, message, usage) => {
    const { exit, out, err } = await create(...argv);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err.startsWith(`Error: ${message}`), err).toBe(true);
    expect(err.includes('\nUsage:\n')).toBe(usage);
    expect(err).not.toContain('hush');
  });
});

describe('output', () => {
  test('is locked and for all users by default', async () => {
    const body = '{"kubernetes":{"enabled":false}}';
    const { exit, out, err } = await create('--output', 'reg', '-b', body);
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out).toContain('[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\locked]\n"version"=dword:13\n');
    expect((await create('--output', 'reg', '--hive=', '--type', '', '-b', body)).out).toBe(out);
    expect(await create('--output', 'plist', '--hive=', '--type=', '-b', body)).toMatchObject({ exit: 0 });
    const other = await create('--output=reg', '--hive=HKCU', '--type=Defaults', '-b', body);
    expect(other.out).toContain('[HKEY_CURRENT_USER\\SOFTWARE\\Policies\\Rancher Desktop\\defaults]\n');
  });

  test('is the same from a file, from standard input and from the command line', async () => {
    const cwd = temporaryDirectory();
    const text = '\ufeff{"images":{"showAll":true}}\n';
    writeFileSync(join(cwd, 'settings.json'), text);
    const outcomes = await Promise.all([
      rdctl(['create-profile', '--output=plist', '--input', 'settings.json'], { ...NOTHING, cwd }),
      rdctl(['create-profile', '--output=plist', '--input', '-'], { ...NOTHING, stdin: text }),
      rdctl(['create-profile', '--output=plist', '--body', text], NOTHING),
    ]);
    for (const outcome of outcomes) expect(outcome).toEqual({ ...outcomes[0], exit: 0, err: '' });
    expect(outcomes[0]?.out).toContain('<key>showAll</key>\n      <true/>\n');
  });

  test('what is left out is reported on stderr, and fails with --strict', async () => {
    const argv = ['--output', 'reg', '-b', '{"Kubernetes":{"enabled":true},"images":{"showAll":true}}'];
    const { exit, out, err } = await create(...argv);
    expect(exit).toBe(0);
    expect(out).not.toContain('ubernetes');
    expect(err).toBe('Warning: Kubernetes is not a setting and was left out. Did you mean kubernetes?\n');
    const strict = await create(...argv, '--strict');
    expect(strict).toMatchObject({ exit: 1, out: '' });
    expect(strict.err).toContain('--body:1:2: unknown setting "Kubernetes"');
    // Together with all the others.
    const both = await create('--output', 'json', '-b', '{"x":1,"kubernetes":{"port":99999}}', '--strict');
    expect(both.err).toMatch(/^Error: 2 errors in --body; .*\n.*"x".*\n.*99999/);
  });
});

/** The examples that the tool facts give in 7.4 and 7.5: what follows the lines common to all profiles. */
describe('the examples of the compatible tool', () => {
  const KEY = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\locked';

  test.each<[string, string, string[]]>([
    [
      'R2',
      '{"application":{"adminAccess":false,"updater":{"enabled":false},"pathManagementStrategy":"manual","autoStart":false}}',
      [
        `[${KEY}\\application]`,
        '"adminAccess"=dword:0',
        '"autoStart"=dword:0',
        '"pathManagementStrategy"="manual"',
        `[${KEY}\\application\\updater]`,
        '"enabled"=dword:0',
      ],
    ],
    [
      'R3',
      '{"kubernetes":{"port":6443,"version":"1.29.5","enabled":true}}',
      [`[${KEY}\\kubernetes]`, '"enabled"=dword:1', '"port"=dword:192b', '"version"="1.29.5"'],
    ],
    [
      'R4, with a name that an image can have',
      '{"application":{"extensions":{"installed":{"b/x":"latest","a/y":"1.0"}}}}',
      [
        `[${KEY}\\application]`,
        `[${KEY}\\application\\extensions]`,
        `[${KEY}\\application\\extensions\\installed]`,
        '"a/y"="1.0"',
        '"b/x"="latest"',
      ],
    ],
    [
      'a value as it is written',
      '{"containerEngine":{"name":"docker"}}',
      [`[${KEY}\\containerEngine]`, '"name"="docker"'],
    ],
    ['an empty map', '{"WSL":{"integrations":{}}}', [`[${KEY}\\WSL]`, `[${KEY}\\WSL\\integrations]`]],
    [
      'an empty list',
      '{"application":{"extensions":{"allowed":{"list":[]}}}}',
      [
        `[${KEY}\\application]`,
        `[${KEY}\\application\\extensions]`,
        `[${KEY}\\application\\extensions\\allowed]`,
        '"list"=hex(7):00,00',
      ],
    ],
    ['empty sections and null', '{"kubernetes":{},"images":null,"containers":{"showAll":null}}', []],
  ])('%s', async (_, body, lines) => {
    const { exit, out } = await create('--output=reg', '-b', body);
    expect(exit).toBe(0);
    expect(out.split('\n').slice(3)).toEqual([`[${KEY}]`, '"version"=dword:13', ...lines, '']);
  });

  test('R1', async () => {
    const body =
      '{"kubernetes":{"enabled":false},"containerEngine":{"allowedImages":{"patterns":["abc","ghi"]}},"WSL":{"integrations":{"second":false,"First":true}},"virtualMachine":{"memoryInGB":16}}';
    const { out } = await create('--output', 'reg', '--hive', 'HKCU', '--type', 'Locked', '-b', body);
    await expect(out).toMatchFileSnapshot('../golden/profiles/locked-user.reg');
  });

  test('P1', async () => {
    const body =
      '{"kubernetes":{"version":"a&b"},"containerEngine":{"allowedImages":{"patterns":[]}},"WSL":{"integrations":{}}}';
    const { exit, out, err } = await create('--output', 'plist', '-b', body);
    expect(exit).toBe(0);
    expect(out.split('\n').slice(3)).toEqual([
      ...['  <dict>', '    <key>version</key>', '    <integer>19</integer>', '    <key>containerEngine</key>'],
      ...['    <dict>', '      <key>allowedImages</key>', '      <dict>', '        <key>patterns</key>'],
      ...['        <array>', '        </array>', '      </dict>', '    </dict>', '    <key>kubernetes</key>'],
      ...['    <dict>', '      <key>version</key>', '      <string>a&amp;b</string>', '    </dict>'],
      ...['    <key>WSL</key>', '    <dict>', '      <key>integrations</key>', '      <dict>', '      </dict>'],
      ...['    </dict>', '  </dict>', '</plist>', '', ''],
    ]);
    // Whether the application accepts it is checked only on request.
    expect(err).toBe('');
    const checked = await create('--output', 'plist', '-b', body, '--check');
    expect(checked).toMatchObject({ exit: 0, out });
    expect(checked.err).toContain('the application on macOS would refuse this profile: --body:1:26: ');
  });

  test.each(['10', '1', '18'])('an older version (%s) is written as it is with --keep-version', async (version) => {
    const body = `{"version":${version},"images":{"showAll":true}}`;
    expect((await create('--output=plist', '--keep-version', '-b', body)).out).toContain(
      `<integer>${version}</integer>`,
    );
    expect((await create('--output=plist', '-b', body)).out).toContain('<integer>19</integer>');
  });

  test.each([
    ['{"kubernetes":5}', '"kubernetes" is a section, not a value'],
    ['{"containerEngine":{"allowedImages":{"patterns":"abc"}}}', 'expected a list of strings'],
    ['{"containerEngine":{"allowedImages":{"patterns":[1]}}}', 'expected a list of strings'],
    ['{"kubernetes":{"version":1.25}}', 'expected a string; did you mean "1.25"?'],
    ['{"kubernetes":{"enabled":"true"}}', 'expected true or false; did you mean true?'],
    ['{"kubernetes":{"port":"6443"}}', 'did you mean 6443?'],
    ['{"WSL":{"integrations":"x"}}', '(/WSL/integrations)'],
    ['{"WSL":{"integrations":{"d":null}}}', '(/WSL/integrations/d)'],
    ['{"WSL":{"integrations":{"d":1}}}', '(/WSL/integrations/d)'],
    ['{"virtualMachine":{"numberCPUs":1.7}}', '(/virtualMachine/numberCPUs)'],
    ['{"application":{"extensions":{"installed":{"A/y":"1.0"}}}}', '"A/y" is an invalid name'],
    ['{"kubernetes":{"port":99999}}', 'expected an integer from 1 to 65535'],
    ['{"containerEngine":{"name":"podman"}}', 'expected one of "containerd", "moby"'],
    ['{"version":null}', '(/version)'],
  ])('%s is reported in every format', async (body, finding) => {
    const told = await Promise.all(
      ['reg', 'plist', 'json', 'mobileconfig'].map((format) => create('--output', format, '-b', body)),
    );
    for (const { exit, out, err } of told) {
      expect({ exit, out }).toEqual({ exit: 1, out: '' });
      expect(err).toContain(finding);
      expect(err).not.toContain('Usage:');
    }
  });
});

describe('a desired-state profile', () => {
  const stdin = `apiVersion: rdctl/v1
kind: Profile
settings:
  version: 19
  containerEngine: { name: moby }
  kubernetes: { enabled: false, port: 6444 }
locked: { containerEngine: true, kubernetes: { enabled: true } }
`;
  const json = async (...argv: string[]) => {
    const { exit, out, err } = await rdctl(['create-profile', '--output=json', '--input=-', ...argv], {
      ...NOTHING,
      stdin,
    });
    expect(exit).toBe(0);
    expect(err).not.toContain('Warning');
    return JSON.parse(out);
  };
  const said = async (...argv: string[]) =>
    (await rdctl(['create-profile', '--input=-', ...argv], { ...NOTHING, stdin })).err;

  test('reports what the other part has, and which flag writes it', async () => {
    const two = 'Note: 2 settings are locked and not in this file';
    expect(await said('--output=json')).toBe(
      'Note: 1 setting is a default and not in this file (--part defaults writes it).\n',
    );
    expect(await said('--output=plist', '--part=defaults')).toBe(`${two} (--part locked writes them).\n`);
    expect(await said('--output=reg', '--type=defaults')).toBe(`${two} (--type locked writes them).\n`);
    const nothing = await said('--output=json', '--part=defaults', '--only=containerEngine');
    expect(nothing).toContain(
      'Note: --only containerEngine matches nothing in this file: it is locked (--part locked writes it).\n',
    );
    expect(await said('--output=json', '--strict')).toMatch(/^Note: /);
  });

  test('is written as two parts', async () => {
    const locked = { version: 19, containerEngine: { name: 'moby' }, kubernetes: { enabled: false } };
    expect(await json()).toEqual(locked);
    expect(await json('--part', 'LOCKED')).toEqual(locked);
    expect(await json('--part=defaults')).toEqual({ version: 19, kubernetes: { port: 6444 } });
  });

  test('or fewer', async () => {
    expect(await json('--only', 'kubernetes.enabled', '--only=containerEngine')).toEqual(await json());
    expect(await json('--only', 'kubernetes', '--strict')).toEqual({ version: 19, kubernetes: { enabled: false } });
    expect(await json('--except=kubernetes')).toEqual({ version: 19, containerEngine: { name: 'moby' } });
    expect(await json('--changed-only')).toEqual({ version: 19, kubernetes: { enabled: false } });
  });
});

describe('files', () => {
  const SECRET = '{"experimental":{"virtualMachine":{"proxy":{"password":"hush"}}}}';
  const write = (cwd: string, ...argv: string[]) => rdctl(['create-profile', ...argv], { ...NOTHING, cwd });
  const mode = (path: string) => statSync(path).mode & 0o777;

  test('are written atomically and readable by all users', async () => {
    const cwd = temporaryDirectory();
    const path = join(cwd, 'locked.json');
    const before = process.umask(0o077);
    try {
      const { exit, out, err } = await write(cwd, '--output=json', '-b', '{}', '--out-file', 'locked.json');
      expect({ exit, out, err }).toEqual({ exit: 0, out: '', err: `Wrote ${path}.\n` });
    } finally {
      process.umask(before);
    }
    expect(readFileSync(path, 'utf8')).toBe((await create('--output=json', '-b', '{}')).out);
    expect(mode(path)).toBe(0o644);
    expect(readdirSync(cwd)).toEqual(['locked.json']);
  });

  test('with a password are readable by their owner only', async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'locked.reg'), 'old', { mode: 0o644 });
    const { exit, err } = await write(cwd, '--output=reg', '-b', SECRET, '--out-file=locked.reg');
    expect(exit).toBe(0);
    expect(err).toMatch(
      /^Warning: .*password is written in plain text.*\nReplaced .*locked\.reg, readable only by you: /,
    );
    expect(err).not.toContain('hush');
    expect(mode(join(cwd, 'locked.reg'))).toBe(0o600);
    expect(readFileSync(join(cwd, 'locked.reg'), 'utf8')).toContain('"password"="hush"');
  });

  test('that others can also read are not called per-user', async () => {
    const { exit, err } = await write('/', '--output=reg', '-b', SECRET, '--out-file=/dev/null');
    expect(exit).toBe(0);
    expect(err).toMatch(/^Warning: .*password is written in plain text.*\nWrote \/dev\/null\.\n$/);
  });

  test.each([
    [
      'what the format cannot hold',
      ['--output=plist', '-b', '{"containerEngine":{"allowedImages":{"patterns":["\\u0000"]}}}'],
    ],
    ['a mistake', ['--output=json', '-b', '{"images":1}']],
    ['a warning and --strict', ['--output=json', '-b', '{"x":1}', '--strict']],
  ])('stay unchanged with %s', async (_, argv) => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'f'), 'old');
    expect(await write(cwd, ...argv, '--out-file', 'f')).toMatchObject({ exit: 1, out: '' });
    expect(readFileSync(join(cwd, 'f'), 'utf8')).toBe('old');
    expect(readdirSync(cwd)).toEqual(['f']);
  });

  test('that are not regular files are written in place', async () => {
    const { exit, err } = await write('/', '--output=json', '-b', '{}', '--out-file=/dev/null');
    expect({ exit, err }).toEqual({ exit: 0, err: 'Wrote /dev/null.\n' });
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
  });

  test.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
    'are not written through a link that another user has made, wherever on the path it is',
    async () => {
      const [shared, own] = [temporaryDirectory(), temporaryDirectory()];
      chmodSync(shared, 0o1777);
      writeFileSync(join(own, 'precious'), 'mine');
      const [file, directory] = [join(shared, 'file'), join(shared, 'directory')];
      symlinkSync(join(own, 'precious'), file);
      symlinkSync(own, directory);
      for (const link of [file, directory]) lchownSync(link, 65534, 65534);
      for (const path of [file, join(directory, 'new'), join(directory, 'precious')]) {
        const { exit, err } = await write(shared, '--output=json', '-b', '{}', '--out-file', path);
        expect(err).toMatch(
          /^Error: could not write .*: the link .* belongs to another user \(owner nobody, .*\), and may lead to any file\n/,
        );
        expect(exit).toBe(1);
      }
      expect(readdirSync(own)).toEqual(['precious']);
      expect(readFileSync(join(own, 'precious'), 'utf8')).toBe('mine');
      for (const link of [file, directory]) lchownSync(link, 0, 0);
      expect((await write(shared, '--output=json', '-b', '{}', '--out-file', file)).exit).toBe(0);
      expect(readFileSync(join(own, 'precious'), 'utf8')).not.toBe('mine');
    },
  );

  test('of both hives are written side by side', async () => {
    const cwd = temporaryDirectory();
    const create = (...argv: string[]) => write(cwd, '--output=reg', '-b', '{}', '--out-dir=.', ...argv);
    expect((await create()).err).toBe(`Wrote ${join(cwd, 'locked.reg')}.\n`);
    expect((await create('--hive=hkcu')).err).toBe(`Wrote ${join(cwd, 'locked.hkcu.reg')}.\n`);
    expect((await create()).err).toBe(`Replaced ${join(cwd, 'locked.reg')}.\n`);
    expect(readdirSync(cwd).sort()).toEqual(['locked.hkcu.reg', 'locked.reg']);
  });

  test('must contain settings, not deployment profiles', async () => {
    const cwd = temporaryDirectory();
    for (const format of ['reg', 'plist', 'mobileconfig']) {
      await write(cwd, '--output', format, '-b', '{}', '--out-file', `old.${format}`);
      expect(await write(cwd, '--output=json', '--input', `old.${format}`)).toMatchObject({
        exit: 1,
        err: `Error: old.${format} is already a deployment profile (${format}); settings in JSON or YAML are expected\nConvert it first: rdctl import-profile "old.${format}" --out-file profile.yaml\n`,
      });
    }
    expect((await write(cwd, '--output=json', 'team.yaml')).err).toContain(
      'Specify a settings file with --input FILE: --input "team.yaml"\n',
    );
  });

  test('are written through a link, which stays', async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'f'), 'old');
    symlinkSync('f', join(cwd, 'link'));
    symlinkSync('nothing', join(cwd, 'lost'));
    expect((await write(cwd, '--output=json', '-b', '{}', '--out-file=link')).exit).toBe(0);
    expect(readFileSync(join(cwd, 'f'), 'utf8')).toContain('"version": 19');
    expect(lstatSync(join(cwd, 'link')).isSymbolicLink()).toBe(true);
    const lost = await write(cwd, '--output=json', '-b', '{}', '--out-file=lost');
    expect(lost).toMatchObject({ exit: 1, err: expect.stringContaining('lost: it is a dangling symbolic link\n') });
  });

  test.each([
    ['no/f', 'could not write ', 'Create it first, or choose another path.'],
    ['/dev', 'it is a directory', ''],
    ['.', '"." names a directory', ''],
    ['/dev/null/f', 'part of the path is a file', ''],
  ])('are not written to %s', async (file, reason, advice) => {
    const { exit, out, err } = await write(temporaryDirectory(), '--output=json', '-b', '{}', '--out-file', file);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain(` ${reason}`);
    expect(err).toContain(advice);
    expect(err).not.toContain('RDCTL_HOME');
  });

  test.each([
    ['plist', 'locked', 'io.rancherdesktop.profile.locked.plist'],
    ['plist', 'defaults', 'io.rancherdesktop.profile.defaults.plist'],
    ['json', 'defaults', 'defaults.json'],
    ['reg', 'locked', 'locked.reg'],
  ])('of %s in a directory, %s, have the expected name', async (format, part, name) => {
    const cwd = temporaryDirectory();
    const flag = format === 'reg' ? '--type' : '--part';
    const before = process.umask(0o077);
    try {
      const { exit, err } = await write(cwd, '--output', format, flag, part, '-b', '{}', '--out-dir', 'made');
      expect({ exit, err }).toEqual({ exit: 0, err: `Wrote ${join(cwd, 'made', name)}.\n` });
    } finally {
      process.umask(before);
    }
    expect(mode(join(cwd, 'made'))).toBe(0o755);
  });

  test('for policy templates', async () => {
    const cwd = temporaryDirectory();
    const { exit, out } = await write(cwd, '--output=admx', '--out-dir=.');
    expect({ exit, out }).toEqual({ exit: 0, out: '' });
    expect(readdirSync(cwd, { recursive: true }).sort()).toEqual([
      'RancherDesktop.admx',
      'en-US',
      join('en-US', 'RancherDesktop.adml'),
    ]);
  });

  test('for the registry editor', async () => {
    const cwd = temporaryDirectory();
    const argv = ['--output=reg', '-b', '{"WSL":{"integrations":{"Бук😀":true}}}'];
    const plain = await write(cwd, ...argv);
    expect(plain.err).toMatch(/^Warning: regedit would misread non-ASCII characters; use --encoding utf-16le\.\n$/);
    const wide = await write(cwd, ...argv, '--encoding', 'UTF-16LE');
    expect(wide).toMatchObject({ exit: 0, err: '' });
    const bytes = Buffer.from(wide.out, 'latin1');
    expect(bytes.toString('utf16le')).toBe(`\ufeff${plain.out.replaceAll('\n', '\r\n')}`);
    await write(cwd, ...argv, '--encoding=utf-16le', '--out-file=f.reg');
    expect(readFileSync(join(cwd, 'f.reg')).equals(bytes)).toBe(true);
  });
});

test('bytes in a registry file that is not UTF-16 are noted once', async () => {
  const patterns = '{"containerEngine":{"allowedImages":{"patterns":["a","b"]}}}';
  const note = /^Note: use --encoding utf-16le for lists and text with control characters: .*\n$/;
  expect((await create('--output=reg', '-b', patterns, '--strict')).err).toMatch(note);
  expect((await create('--output=reg', '-b', patterns, '--encoding=utf-16le')).err).toBe('');
  expect((await create('--output=plist', '-b', patterns)).err).toBe('');
  const text = '{"application":{"extensions":{"installed":{"a/b":"=hex(7):61"}}}}';
  expect((await create('--output=reg', '-b', text)).err).not.toContain('lists');
  const control = '{"experimental":{"virtualMachine":{"proxy":{"address":"a\\u0007b"}}}}';
  expect((await create('--output=reg', '-b', control)).err).toMatch(note);
});

test('values the application would refuse fail with --strict; values it would change do not', async () => {
  const refused = '{"experimental":{"virtualMachine":{"diskSize":"50GiB"}}}';
  expect(await create('--output=plist', '-b', refused, '--strict')).toMatchObject({ exit: 1, out: '' });
  const ignored = await create('--output=reg', '-b', '{"containerEngine":{"name":"docker"}}', '--strict');
  expect(ignored).toMatchObject({ exit: 1, err: expect.stringContaining('would ignore a setting: --body:1:28: ') });
  const changed = ['--output=json', '--part=defaults', '-b', '{"kubernetes":{"version":"NattyBo"}}', '--strict'];
  expect(await create(...changed)).toMatchObject({ exit: 0, err: expect.stringMatching(/^Note: .*would change/) });
});

test('at most fifty warnings are shown, with the number of the rest', async () => {
  const names = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`x${at}`, at]));
  const lines = (await create('--output=json', '-b', JSON.stringify(names))).err.trimEnd().split('\n');
  expect(lines).toHaveLength(51);
  expect(lines.at(-1)).toBe('Warning: … and 10 more');
});
