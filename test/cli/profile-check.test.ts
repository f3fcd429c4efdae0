import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { profileCheck } from '../../cli/commands/profile/check.ts';
import { run } from '../../cli/run.ts';
import { commandHelp } from '../../cli/views/help-text.ts';
import { fakeIo, rdctl, type Stage } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const check = (args: readonly string[], stage: Stage = {}) => rdctl(['profile', 'check', ...args], stage);

function fileWith(name: string, content: string | object | Buffer): { cwd: string; name: string } {
  const cwd = temporaryDirectory();
  const data = typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content);
  writeFileSync(join(cwd, name), data);
  return { cwd, name };
}

async function reportOf(name: string, content: string | object | Buffer, ...flags: string[]) {
  const file = fileWith(name, content);
  const { exit, out, err } = await check([file.name, '-o', 'json', ...flags], { cwd: file.cwd });
  return { exit, err, report: JSON.parse(out) };
}

test('help', async () => {
  const help = commandHelp(profileCheck, 'linux');
  expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
  await expect(help).toMatchFileSnapshot('../golden/help/profile-check.txt');
});

const TEAM = `apiVersion: rdctl/v1
kind: Profile
settings:
  version: 16
  kubernetes: { version: v1.30.2, enabled: true }
  virtualMachine: { memoryInGB: 8 }
  experimental: { virtualMachine: { diskSize: 200GiB } }
locked:
  kubernetes: true
`;

describe('human output', () => {
  test('is a summary, the table, and each finding once', async () => {
    const { cwd, name } = fileWith('team.yaml', TEAM);
    const { exit, out, err } = await check([name], { cwd });
    expect({ exit, err }).toEqual({ exit: 3, err: '' });
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
    await expect(out).toMatchFileSnapshot('../golden/profile-check/team.txt');
  });

  test.each([40, 10, 200])('fits %i columns', async (columns) => {
    const { cwd, name } = fileWith('team.yaml', TEAM);
    const io = { ...fakeIo({ cwd }), columns };
    await run(['profile', 'check', name], io);
    const long = io.text.out.split('\n').filter((line) => line.length > Math.max(40, Math.min(columns, 80)));
    // A table row and a path are not wrapped.
    expect(long.filter((line) => !/^ {2}\S/.test(line))).toEqual([]);
    expect(io.text.out.split('\n')[0]?.length).toBeGreaterThan(columns === 200 ? 60 : 15);
  });

  test('omits what is ignored by releases that refuse the profile', async () => {
    const settings = { version: 16, nothing: 1, experimental: { virtualMachine: { diskSize: '200GiB' } } };
    const { cwd, name } = fileWith('defaults.json', settings);
    const { out } = await check([name], { cwd });
    expect(out.slice(out.indexOf('~ Ignored'))).toBe(`~ Ignored: the application starts without it
  nothing (defaults, defaults.json:1:15)
      no release has such a setting
      1.20–1.24
  experimental.virtualMachine.diskSize (defaults, defaults.json:1:61)
      1.21 is the first release with it
      1.20

= Changed: the application starts with a different value
  containerEngine.mobyStorageDriver (defaults)
      it becomes "auto" with a profile of version 16 or lower that does not
      set it
      1.22–1.24
`);
  });

  test('needs no list when everyone accepts the profile', async () => {
    const { cwd, name } = fileWith('locked.json', {
      version: 6,
      kubernetes: { enabled: false },
      experimental: { containerEngine: {} },
    });
    const { exit, out } = await check([name, '--release', '1.8', '--platform', 'linux'], { cwd });
    expect({ exit, out }).toEqual({
      exit: 0,
      out: `locked.json: Accepted by 1.8 on Linux.

  Release  Settings  Linux
  1.8      6         ✓ accepted
`,
    });
  });

  test('has a table per file, and a file that is not settings does not hide the others', async () => {
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'bad.yaml'), 'a: [');
    writeFileSync(join(cwd, 'locked.json'), '{"version":19}');
    const { exit, out } = await check(['bad.yaml', 'locked.json', '--release=1.24'], { cwd });
    expect(exit).toBe(3);
    expect(out).toMatch(/^bad\.yaml: not checked: bad\.yaml:1:\d+: .*\n/);
    expect(out).toContain('\nlocked.json: Accepted by 1.24 on Linux.\n');
  });

  test('puts a long setting and its position on one line only when they fit', async () => {
    const path = 'experimental.virtualMachine.mount.9p.protocolVersion';
    const { cwd, name } = fileWith('of-the-team.locked.json', {
      version: 19,
      experimental: { virtualMachine: { mount: { '9p': { protocolVersion: '9p2000' } } } },
    });
    const { out } = await check([name, '--release=1.24', '--part=locked'], { cwd });
    expect(out).toContain(`\n  ${path}\n      (locked, of-the-team.locked.json:`);
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  test('reports a shared finding once, at the end', async () => {
    const { cwd, name } = fileWith('locked.json', { version: 19, first: 1, second: 2, telemetri: 3 });
    const { out } = await check([name, '--release=1.24'], { cwd });
    expect(out.slice(out.indexOf('~ Ignored'))).toBe(`~ Ignored: the application starts without it
  first (locked, locked.json:1:15)
  second (locked, locked.json:1:25)
      no release has such a setting
      1.24
  telemetri (locked, locked.json:1:36)
      no release has such a setting; did you mean telemetry?
      1.24
`);
  });

  test('escapes names from a file, and does not list a thousand of them', async () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`\u001b[31mname${index}`, 1]));
    const { cwd, name } = fileWith('locked.json', { version: 19, ...many });
    const { exit, out } = await check([name, '--release=1.24'], { cwd });
    expect(exit).toBe(0);
    expect(out).not.toContain('\u001b');
    expect(out).toContain('Accepted in part by 1.24 on Linux, where 1000 settings are\nignored.');
    expect(out).toContain('… and 950 more (use -o json to see all)');
    expect(out.split('\n').length).toBeLessThan(70);
  });
});

describe('exit code', () => {
  const PARTLY = { version: 19, nothing: true };

  test.each([
    [{ version: 19 }, ['--release=1.24'], 0],
    [{ version: 19 }, [], 3],
    [PARTLY, ['--release=v1.24.0'], 0],
    [PARTLY, ['--release=1.24', '--strict'], 3],
    [{ version: 16, containerEngine: {} }, ['--release=1.24', '--strict'], 0],
    [{ version: 19, virtualMachine: { memoryInGB: 4 } }, ['--release=1.24', '--platform=macos', '--platform=linux'], 0],
    [{ version: 19, virtualMachine: { memoryInGB: 4 } }, ['--release=1.24', '--platform=windows'], 3],
  ])('%j with %j is %i', async (settings, flags, expected) => {
    const { cwd, name } = fileWith('locked.json', settings);
    expect((await check([name, ...flags], { cwd })).exit).toBe(expected);
    const json = await check([name, ...flags, '-o', 'json'], { cwd });
    expect(json.exit).toBe(expected);
    expect(JSON.parse(json.out).accepted).toBe(expected === 0);
  });

  test.each([
    [[], 'no file specified'],
    [['-', '-'], 'standard input (-) can be specified only once'],
    [['x', '--release=1.7'], '--release "1.7": must be from 1.8 to 1.24'],
    [['x', '--release=newest'], '--release "newest": must be from 1.8 to 1.24'],
    [['x', '--platform=beos'], '--platform "beos": must be one of macos, linux, windows'],
    [['x', '--part=both'], '--part "both": must be one of locked, defaults'],
  ])('%j is a usage error', async (args, message) => {
    const { exit, out, err } = await check(args, { cwd: temporaryDirectory() });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain(message);
  });

  test('is 3 with --strict when a release changes the profile', async () => {
    const settings = { version: 16, images: { showAll: true } };
    const lenient = await reportOf('defaults.json', settings, '--release=1.24');
    expect(lenient.report.files[0].findings).toMatchObject([{ effect: 'changed' }]);
    expect(lenient.exit).toBe(0);
    expect(await reportOf('defaults.json', settings, '--release=1.24', '--strict')).toMatchObject({ exit: 3 });
    expect(await reportOf('defaults.json', settings, '--release=1.21', '--strict')).toMatchObject({ exit: 0 });
  });

  test('is an error for a missing file', async () => {
    const { exit, err } = await check(['missing.yaml'], { cwd: temporaryDirectory() });
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: missing\.yaml could not be read: no such file or directory\n/);
  });
});

const KEY = 'SOFTWARE\\Policies\\Rancher Desktop';
const registryFile = (...lines: string[]) => ['Windows Registry Editor Version 5.00', ...lines, ''].join('\r\n');

describe('systems', () => {
  const plist = '<plist><dict><key>version</key><integer>19</integer></dict></plist>';
  const reg = registryFile(`[HKEY_LOCAL_MACHINE\\${KEY}\\Locked]`, '"version"=dword:13');

  test.each<[string, string | object, string[]]>([
    ['x.reg', reg, ['windows accepted']],
    ['x.locked.plist', plist, ['macos accepted']],
    ['locked.json', { version: 19 }, ['linux accepted']],
    ['settings.json', { version: 19 }, ['macos accepted', 'linux accepted', 'windows accepted']],
    ['settings.yaml', 'version: 19\n', ['macos accepted', 'linux accepted', 'windows accepted']],
    // No reader of the name could accept it.
    ['x.locked.plist', { version: 19 }, ['macos rejected', 'linux accepted']],
    ['locked.json', reg, ['linux rejected', 'windows accepted']],
    ['locked.reg', plist, ['macos accepted', 'windows rejected']],
    ['locked.json', 'version: 19\n', ['macos accepted', 'linux rejected', 'windows accepted']],
  ])('of %s with %j', async (name, content, expected) => {
    const { report, err, exit } = await reportOf(name, content, '--release=1.24');
    const [file] = report.files;
    expect(file.cells.map((cell: { platform: string; verdict: string }) => `${cell.platform} ${cell.verdict}`)).toEqual(
      expected,
    );
    const misnamed = expected.some((each) => each.endsWith('rejected'));
    expect(exit).toBe(misnamed ? 3 : 0);
    expect(/its name says .* would not read/.test(err)).toBe(misnamed);
    const one = await reportOf(name, content, '--release=1.24', '--platform=macos');
    expect(one.report.files[0].cells).toHaveLength(1);
  });

  test('a wrong name is given as the reason', async () => {
    const { cwd, name } = fileWith('x.locked.plist', { version: 19 });
    const { out } = await check([name, '--release=1.24'], { cwd });
    expect(out).toContain('x.locked.plist: Accepted by 1.24 on Linux; refused on macOS because of its\nname.\n');
    expect(out).toContain(
      '  x.locked.plist\n      its name says a property list, and it is JSON\n      1.24 on macOS\n',
    );
  });
});

describe('a release that refuses what it would start with', () => {
  const settings = { version: 6, containerEngine: { allowedImages: { enabled: true, patterns: ['a'] } } };
  const registry = (key: string) =>
    registryFile(`[HKEY_LOCAL_MACHINE\\SOFTWARE\\${key}\\Locked]`, '"version"=dword:6', '"x"=dword:0');

  test('a release that looks in another place than that of the file', async () => {
    const note = 'Note: x.reg: releases before 1.9 do not read profiles below SOFTWARE\\Policies.\n';
    const policies = registry('Policies\\Rancher Desktop');
    expect((await reportOf('x.reg', policies)).err).toBe(note);
    expect((await reportOf('x.reg', policies, '--release=1.9')).err).toBe('');
    expect((await reportOf('x.reg', registry('Rancher Desktop\\Profile'))).err).toBe('');
  });

  test('a release that locks less', async () => {
    const note =
      'Note: locked.json: release 1.8 locks only containerEngine.allowedImages; users can change the other locked settings there.\n';
    const more = { ...settings, kubernetes: { enabled: false } };
    expect((await reportOf('locked.json', settings)).err).toBe('');
    expect((await reportOf('locked.json', more)).err).toBe(note);
    expect((await reportOf('locked.json', more)).report.files[0].notices).toHaveLength(1);
    expect((await reportOf('locked.json', more, '--release=1.9')).err).toBe('');
    expect((await reportOf('defaults.json', more)).err).toBe('');
    // It refuses that one anyway.
    expect((await reportOf('locked.json', { ...more, version: 19 })).err).toBe('');
  });
});

test('a Linux file with a byte order mark is refused there', async () => {
  const { cwd, name } = fileWith('locked.json', `\ufeff${JSON.stringify({ version: 19 })}`);
  const { out, exit } = await check([name, '--release=1.24'], { cwd });
  expect(exit).toBe(3);
  expect(out).toContain('locked.json: Refused by 1.24 on Linux because of its byte order mark.\n');
  expect(out).toContain('  locked.json\n      it begins with a byte order mark\n      1.24\n');
});

test('a part or system that does not match the file is reported', async () => {
  const settings = { version: 19, images: { showAll: false } };
  const other = await reportOf('locked.json', settings, '--part=defaults');
  expect(other.report.files[0].parts).toEqual([{ part: 'locked', version: 19 }]);
  expect(other.err).toBe('Note: locked.json indicates its own part; --part is ignored for it.\n');
  expect((await reportOf('locked.json', settings, '--part=locked')).err).toBe('');
  expect((await reportOf('locked.json', settings, '--platform=macOS')).err).toBe(
    'Note: locked.json: macOS does not read this format; its settings are checked there anyway.\n',
  );
});

describe('a stray registry value', () => {
  test('has no part, unlike values below the known keys', async () => {
    const text = registryFile(
      `[HKEY_LOCAL_MACHINE\\${KEY}\\Locked]`,
      '"version"=dword:13',
      `[HKEY_CURRENT_USER\\${KEY}\\Defaults]`,
      '"unheard"=dword:1',
      `[HKEY_LOCAL_MACHINE\\${KEY}]`,
      '"stray"=dword:1',
      '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Other]',
      '"x"=dword:1',
    );
    const { report, err } = await reportOf('x.reg', text, '--release=1.24');
    const parts = report.files[0].findings.map(({ path, part }: { path: string; part: string }) => [path, part]);
    expect(parts).toEqual([
      [`HKEY_CURRENT_USER\\${KEY}\\Defaults: unheard`, 'defaults'],
      [`HKEY_LOCAL_MACHINE\\${KEY}: stray`, null],
    ]);
    expect(err).toBe('Note: x.reg: 1 value in keys of other programs is not part of a profile and was ignored.\n');
    const { cwd, name } = fileWith('x.reg', text);
    expect((await check([name, '--release=1.24'], { cwd })).out).toContain(`${KEY}: stray\n`);
  });
});

test('a value of the wrong registry type is refused by the releases that look for its name', async () => {
  const text = registryFile(
    `[HKEY_LOCAL_MACHINE\\${KEY}\\Locked]`,
    '"version"=dword:0000000a',
    `[HKEY_LOCAL_MACHINE\\${KEY}\\Locked\\containers]`,
    '"SHOWALL"="x"',
    `[HKEY_LOCAL_MACHINE\\${KEY}\\Locked\\experimental\\virtualMachine]`,
    '"type"=dword:5',
    `[HKEY_LOCAL_MACHINE\\${KEY}\\Locked\\WSL\\integrations]`,
    '"Ubuntu"=dword:5',
  );
  const { report } = await reportOf('x.reg', text, '--release=1.11', '--release=1.18', '--release=1.24');
  const told = report.files[0].findings
    .filter(({ path }: { path: string }) => path.startsWith('HKEY'))
    .map(({ path, effect, where }: { path: string; effect: string; where: { releases: string[] }[] }) =>
      [effect, path.split(': ')[1], ...(where[0]?.releases ?? [])].join(' '),
    );
  expect(told.sort()).toEqual([
    'ignored showAll 1.11',
    'ignored type 1.24',
    'refused Ubuntu 1.11 1.18 1.24',
    'refused showAll 1.18 1.24',
    'refused type 1.11 1.18',
  ]);
});

test('templates are reported as such', async () => {
  const { exit, report } = await reportOf('x.admx', '<?xml version="1.0"?>\n<policyDefinitions revision="1.0">');
  expect(exit).toBe(3);
  expect(report.files[0].problem.message).toContain('contains templates for Group Policy');
});

describe('what is checked', () => {
  test('a profile as its two parts, with the position of each setting', async () => {
    const { report, exit } = await reportOf('team.yaml', TEAM, '--release=1.24');
    expect(exit).toBe(3);
    expect(report).toEqual({
      kind: 'ProfileCheck',
      formatVersion: 1,
      accepted: false,
      files: [
        {
          file: 'team.yaml',
          format: 'yaml',
          parts: [
            { part: 'locked', version: 16 },
            { part: 'defaults', version: 16 },
          ],
          cells: ['macos', 'linux', 'windows'].map((platform) => ({
            release: '1.24',
            settingsVersion: 19,
            platform,
            verdict: 'rejected',
          })),
          findings: [
            {
              part: 'locked',
              path: 'kubernetes.version',
              place: 'team.yaml:5:17',
              effect: 'refused',
              reason: 'with a locked version that is not written as 1.30.2, the cluster does not start',
              where: ['macos', 'linux', 'windows'].map((platform) => ({ platform, releases: ['1.24'] })),
            },
            {
              part: 'defaults',
              path: 'virtualMachine.memoryInGB',
              place: 'team.yaml:6:21',
              effect: 'refused',
              reason: 'macOS and Linux only; nothing but 2 passes elsewhere',
              where: [{ platform: 'windows', releases: ['1.24'] }],
            },
            {
              part: 'defaults',
              path: 'experimental.virtualMachine.diskSize',
              place: 'team.yaml:7:37',
              effect: 'refused',
              reason: 'macOS and Linux only; nothing but "100GiB" passes elsewhere',
              where: [{ platform: 'windows', releases: ['1.24'] }],
            },
            {
              part: 'defaults',
              path: 'containerEngine.mobyStorageDriver',
              effect: 'changed',
              reason: 'it becomes "auto" with a profile of version 16 or lower that does not set it',
              where: ['macos', 'linux', 'windows'].map((platform) => ({ platform, releases: ['1.24'] })),
            },
          ],
          notices: [],
        },
      ],
    });
  });

  test('bare settings as the locked part, by default', async () => {
    const settings = { version: 19, kubernetes: { version: 'v1.30.2' } };
    const bare = await reportOf('team.json', settings);
    expect(bare.report.files[0].parts).toEqual([{ part: 'locked', version: 19 }]);
    expect(bare.err).toContain('Note: team.json does not indicate its part');
    const flagged = await reportOf('team.json', settings, '--part=defaults');
    expect(flagged.report.files[0].parts).toEqual([{ part: 'defaults', version: 19 }]);
    expect(flagged.err).toBe('');
    const named = await reportOf('defaults.json', settings, '--release=1.24');
    expect(named.report.files[0].parts).toEqual([{ part: 'defaults', version: 19 }]);
    expect(named.exit).toBe(0);
  });

  test('a secret reference is in no deployment profile and needs no variable here', async () => {
    const proxy = { enabled: true, password: { fromEnv: 'NOT_SET' } };
    const settings = { version: 19, experimental: { virtualMachine: { proxy } } };
    const { report } = await reportOf('locked.json', settings, '--release=1.24', '--platform=windows');
    expect(report.files[0].findings).toEqual([]);
  });

  test('a Linux deployment file that is too long for a document is checked without positions', async () => {
    const settings = { version: 19, images: { namespace: 'n'.repeat(1024 * 1024) }, nothing: 1 };
    const { exit, report } = await reportOf('locked.json', settings, '--release=1.24', '--platform=linux');
    expect(exit).toBe(0);
    const [finding] = report.files[0].findings;
    expect([finding.path, finding.place]).toEqual(['nothing', undefined]);
  });

  test('standard input', async () => {
    const { exit, out } = await check(['-', '--release=1.24'], { stdin: 'version: 19\n' });
    expect(exit).toBe(0);
    expect(out).toMatch(/^<stdin>: Accepted by 1\.24 /);
  });

  test('a registry file with wrong types is refused; one with an unrelated key is read only in part', async () => {
    const text = [
      'Windows Registry Editor Version 5.00',
      '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\Locked]',
      '"version"=dword:13',
      '"colour"="red"',
      '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\Locked\\kubernetes]',
      '"port"="6443"',
    ];
    const { exit, report } = await reportOf('policies.reg', text.join('\r\n'), '--release=1.24', '--platform=windows');
    expect(exit).toBe(3);
    const [file] = report.files;
    expect(file.format).toBe('reg');
    expect(file.parts).toEqual([{ part: 'locked', version: 19 }]);
    expect(file.findings.map((finding: { effect: string; path: string }) => [finding.effect, finding.path])).toEqual([
      ['refused', expect.stringMatching(/kubernetes: port$/)],
      ['ignored', expect.stringMatching(/Locked: colour$/)],
    ]);
  });

  test.each([
    ['examples/policies/locked.json', 'macos', 0, /: macOS does not read this format; .*\n$/],
    ['examples/policies/locked.json', 'windows', 0, /: Windows does not read this format; .*\n$/],
    ['examples/policies/defaults.json', 'linux', 0],
    ['examples/policies/defaults.json', 'windows', 3, /: Windows does not read this format; .*\n$/],
    ['examples/policies/io.rancherdesktop.profile.locked.plist', 'macos', 0],
    ['examples/policies/io.rancherdesktop.profile.defaults.plist', 'macos', 0],
    ['examples/policies/policies.reg', 'windows', 0],
    ['examples/moby.yaml', 'linux', 0],
  ])('%s on %s', async (file, platform, expected, said = /^$/) => {
    const { exit, err } = await check([file, '--release=1.24', `--platform=${platform}`, '--strict']);
    expect({ exit, err }).toEqual({ exit: expected, err: expect.stringMatching(said) });
  });

  test('a profile with errors is not split into parts', async () => {
    const { exit, report } = await reportOf('team.yaml', TEAM.replace('memoryInGB', 'memoryInGb'));
    expect(exit).toBe(3);
    expect(report.files[0].problem.details).toEqual([
      expect.stringMatching(/^team\.yaml:6:21: unknown setting "virtualMachine\.memoryInGb"/),
    ]);
  });
});

test('a shell completes releases, systems and files', async () => {
  const offered = async (...words: string[]) => (await rdctl(['__completeNoDesc', 'profile', 'check', ...words])).out;
  expect(await offered('--release', '1.2')).toBe('1.20\n1.21\n1.22\n1.23\n1.24\n:4\n');
  expect(await offered('--platform', '')).toBe('macos\nlinux\nwindows\n:4\n');
  expect(await offered('--part', 'l')).toBe('locked\n:4\n');
  expect(await offered('')).toBe(':0\n');
});
