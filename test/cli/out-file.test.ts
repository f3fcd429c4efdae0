import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

let cwd = '';
beforeEach(() => {
  cwd = temporaryDirectory();
  put('settings.json', JSON.stringify({ version: 19, kubernetes: { enabled: false } }));
  put('old.yaml', OLD);
});

const OLD = 'version: 10\nkubernetes:\n  enabled: false\n';
const SECRET = 'hush-hush';
const tool = (argv: readonly string[]) => rdctl(argv, { cwd, env: {} });
const put = (name: string, text: string) => writeFileSync(join(cwd, name), text);
const modeOf = (name: string) => statSync(join(cwd, name)).mode & 0o777;

const COMMANDS: [string, string[]][] = [
  ['create-profile', ['create-profile', '--output', 'json', '--input', 'settings.json']],
  ['import-profile', ['import-profile', 'settings.json', '--force']],
  ['profile upgrade', ['profile', 'upgrade', 'old.yaml']],
  ['plan', ['plan', '-f', 'settings.json']],
  ['init', ['init', '--force']],
  ['image save', ['image', 'save', 'some']],
];

describe.each(COMMANDS)('%s', (_, argv) => {
  test.each(['there.yaml/', 'there.yaml/.', './', '.', '..'])('--out-file %s is not a file', async (name) => {
    put('there.yaml', 'mine');
    const { exit, out, err } = await tool([...argv, '--out-file', name]);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain(`--out-file "${name}" names a directory; specify a file`);
    expect(readFileSync(join(cwd, 'there.yaml'), 'utf8')).toBe('mine');
  });

  test('--out-file - creates no file of that name', async () => {
    const { exit, out, err } = await tool([...argv, '--out-file', '-']);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain('--out-file "-" is not a file name\nFor a file named "-", use ./-');
    expect(existsSync(join(cwd, '-'))).toBe(false);
  });

  test('an empty --out-file is an error, not standard output', async () => {
    const { exit, out, err } = await tool([...argv, '--out-file', '']);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain('--out-file requires a non-empty name');
  });
});

test('so is an empty --report or --out-dir', async () => {
  const imported = await tool(['import-profile', 'settings.json', '--report', '']);
  expect(imported).toMatchObject({
    exit: 1,
    out: '',
    err: expect.stringContaining('--report requires a non-empty name'),
  });
  const created = await tool(['create-profile', '--output', 'json', '--input', 'settings.json', '--out-dir', '']);
  expect(created).toMatchObject({
    exit: 1,
    out: '',
    err: expect.stringContaining('--out-dir requires a non-empty name'),
  });
});

describe.skipIf(process.platform === 'win32')('permissions', () => {
  const create = (settings: object) => {
    put('settings.json', JSON.stringify({ version: 19, ...settings }));
    return tool(['create-profile', '--output', 'reg', '--input', 'settings.json', '--out-file', 'out.reg']);
  };
  const proxy = { experimental: { virtualMachine: { proxy: { password: SECRET } } } };

  test('a new profile is readable by all, one with a password only by its owner', async () => {
    expect(await create({ kubernetes: { enabled: false } })).toMatchObject({ exit: 0 });
    expect(modeOf('out.reg')).toBe(0o644);
    expect(await create(proxy)).toMatchObject({ exit: 0 });
    expect(modeOf('out.reg')).toBe(0o600);
  });

  test.each([0o600, 0o640, 0o400])('an existing file with the stricter mode %o keeps it', async (mode) => {
    put('out.reg', 'old');
    chmodSync(join(cwd, 'out.reg'), mode);
    const { exit, err } = await create({ kubernetes: { enabled: false } });
    expect(exit).toBe(0);
    expect(err).toContain(
      'out.reg keeps its restrictive permissions, but the application reads it as the logged-in user.',
    );
    expect(readFileSync(join(cwd, 'out.reg'), 'utf8')).toContain('kubernetes');
    expect(modeOf('out.reg')).toBe(mode);
  });

  test.each([0o644, 0o600, 0o640])('an upgraded file keeps the mode %o of the old one', async (mode) => {
    chmodSync(join(cwd, 'old.yaml'), mode);
    expect(await tool(['profile', 'upgrade', 'old.yaml', '--out-file', 'new.yaml'])).toMatchObject({ exit: 0 });
    expect(readFileSync(join(cwd, 'old.yaml'), 'utf8')).toBe(OLD);
    expect(modeOf('new.yaml')).toBe(mode);
  });

  test('a file with a password becomes readable only by its owner', async () => {
    put('old.yaml', `${OLD}experimental:\n  virtualMachine:\n    proxy:\n      password: ${SECRET}\n`);
    const { exit, out, err } = await tool(['profile', 'upgrade', 'old.yaml', '--out-file', 'new.yaml']);
    expect(exit, err).toBe(0);
    expect(out + err).not.toContain(SECRET);
    expect(existsSync(join(cwd, 'new.yaml'))).toBe(true);
    expect(readFileSync(join(cwd, 'new.yaml'), 'utf8')).toContain(SECRET);
    expect(modeOf('new.yaml')).toBe(0o600);
  });
});
