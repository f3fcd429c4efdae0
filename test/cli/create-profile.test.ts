import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NOTHING = { env: { RDCTL_HOME: '/nowhere' } };
const create = (...argv: string[]) => rdctl(['create-profile', ...argv], NOTHING);

const EXACTLY = 'must specify exactly one input format of "--input FILE|-", "--body|-b STRING", or "--from-settings"';

describe('what is refused, in this order', () => {
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
    [['--output', 'reg', '--input', '/no/such/file'], 'open /no/such/file: no such file or directory', false],
    [['--output', 'reg', '-b', '{"password":"hush"'], 'error in json: line 1: ', false],
    [['--output', 'reg', '-b', '{} trailing'], 'error in json: line 1: ', false],
    [['--output', 'reg', '-b', 'a: 1'], 'error in json: it is not JSON', false],
    [['--output', 'reg', '-b', '[]'], 'error in json: the settings must be an object', false],
    [['--output', 'reg', '-b', 'null'], 'error in json: the settings must be an object', false],
    [['--output', 'reg', '-b', '['.repeat(200)], 'error in json: it is nested too deeply', false],
    [
      ['--output', 'reg', '-b', '{"kubernetes":{"enabled":1}}'],
      'kubernetes.enabled: expected true or false, got a number',
      false,
    ],
    [['--output', 'plist', '-b', '{"version":"x"}'], 'version: expected a number, got a string', false],
    [['--output', 'reg', '--from-settings'], 'failed to get connection info: open /nowhere/app-engine.json: ', false],
  ])('%j', async (argv, message, usage) => {
    const { exit, out, err } = await create(...argv);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err.startsWith(`Error: ${message}`), err).toBe(true);
    expect(err.includes('\nUsage:\n')).toBe(usage);
    expect(err).not.toContain('hush');
  });
});

describe('what is printed', () => {
  test('locked and for all users unless told', async () => {
    const body = '{"kubernetes":{"enabled":false}}';
    const { exit, out, err } = await create('--output', 'reg', '-b', body);
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out).toContain('[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\locked]\n"version"=dword:13\n');
    const other = await create('--output=reg', '--hive=HKCU', '--type=Defaults', '-b', body);
    expect(other.out).toContain('[HKEY_CURRENT_USER\\SOFTWARE\\Policies\\Rancher Desktop\\defaults]\n');
  });

  test('from a file, from standard input and from the command line alike', async () => {
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

  test('what is left out is said on stderr, and is a failure with --strict', async () => {
    const argv = ['--output', 'reg', '-b', '{"Kubernetes":{"enabled":true},"images":{"showAll":true}}'];
    const { exit, out, err } = await create(...argv);
    expect(exit).toBe(0);
    expect(out).not.toContain('ubernetes');
    expect(err).toBe('Warning: Kubernetes is no setting and was left out. Did you mean kubernetes?\n');
    const strict = await create(...argv, '--strict');
    expect(strict).toMatchObject({ exit: 1, out: '' });
    expect(strict.err).toContain('Kubernetes is no setting');
  });
});

describe('of the settings in force', () => {
  const from = async (settings: object, output: string) => {
    await using server = await scriptedServer(() => ({ body: JSON.stringify(settings) }));
    return await rdctl(['create-profile', '--from-settings', '--output', output], { env: server.env });
  };
  const proxy = (password: string) => ({ experimental: { virtualMachine: { proxy: { password, port: 3128 } } } });

  test('the proxy password is left out', async () => {
    for (const output of ['reg', 'plist']) {
      const { exit, out, err } = await from({ version: 19, kubernetes: {}, ...proxy('hush') }, output);
      expect(exit).toBe(0);
      expect(out).toContain('port');
      expect(out).not.toMatch(/hush|password/);
      expect(err).toBe(
        'Warning: experimental.virtualMachine.proxy.password is a secret and was left out; give it with --input or --body to write it.\n',
      );
      expect((await from({ version: 19, kubernetes: {}, ...proxy('') }, output)).err).toBe('');
    }
    const given = await create('--output=plist', '-b', JSON.stringify(proxy('hush')));
    expect(given.out).toContain('<string>hush</string>');
  });

  test('settings of an older application become those of the present version', async () => {
    const older = { version: 14, kubernetes: {}, experimental: { virtualMachine: { type: 'vz' } } };
    const { out, err } = await from(older, 'reg');
    expect(err).toBe('');
    expect(out).toContain('"version"=dword:13\n');
    expect(out).toContain('\\locked\\virtualMachine]\n"type"="vz"\n');
  });

  test('a refused password', async () => {
    await using server = await scriptedServer(() => ({ status: 401, body: 'Unauthorized' }));
    const { exit, out, err } = await rdctl(['create-profile', '--from-settings', '--output=reg'], { env: server.env });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: 401 Unauthorized: user\/password not accepted/);
  });
});
