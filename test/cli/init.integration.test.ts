import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import schema from '../../schemas/profile.json';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const CANCELLED = Symbol('cancelled');
const prompts = vi.hoisted(() => ({ text: vi.fn(), select: vi.fn(), confirm: vi.fn(), isCancel: vi.fn() }));
vi.mock('@clack/prompts', () => prompts);

beforeEach(() => {
  prompts.text.mockReset().mockResolvedValue('rdctl.yaml');
  prompts.select.mockReset().mockResolvedValue('containerd');
  prompts.confirm.mockReset().mockResolvedValue(false);
  prompts.isCancel.mockImplementation((answer) => answer === CANCELLED);
});

const env = () => ({ RDCTL_HOME: temporaryDirectory() });
const TERMINAL = { interactive: true, columns: 80 };

test('asks on a terminal, and writes a valid profile with the answers, also where they are the defaults', async () => {
  const cwd = temporaryDirectory();
  const { exit, out, err } = await rdctl(['init'], { env: env(), cwd, ...TERMINAL });
  expect({ exit, out, err }).toEqual({
    exit: 0,
    out: '',
    err: 'Wrote rdctl.yaml. Check it with: rdctl plan -f rdctl.yaml\n',
  });
  const { settings, state, metadata } = parse(readFileSync(join(cwd, 'rdctl.yaml'), 'utf8'));
  expect({ settings, state, metadata }).toEqual({
    metadata: { name: 'rdctl' },
    settings: { version: 19, containerEngine: { name: 'containerd' }, kubernetes: { enabled: false } },
    state: 'started',
  });
  expect((await rdctl(['validate', 'rdctl.yaml'], { env: env(), cwd })).exit).toBe(0);
  const { validate } = prompts.text.mock.calls[0]?.[0] ?? {};
  expect(validate('rdctl.yaml')).toBe('It exists; choose another name.');
  expect(validate('-')).toMatch(/is not a file name/);
  expect(validate('other.yaml')).toBeUndefined();
});

test('in a fresh home: a named profile to begin with, whose comments are settings, and which changes no setting', async () => {
  const cwd = temporaryDirectory();
  const home = env();
  expect((await rdctl(['init', '--out-file', 'team.yaml'], { env: home, cwd })).exit).toBe(0);
  const text = readFileSync(join(cwd, 'team.yaml'), 'utf8');
  expect(parse(text)).toMatchObject({
    metadata: { name: 'team' },
    settings: { version: 19, containerEngine: { name: 'moby' } },
  });
  expect(parse((await rdctl(['init'], { env: home, cwd })).out).metadata).toEqual({ name: 'desktop' });
  // As the comment says.
  const whole = text.replace(/^ {2}# (?=[ a-z])/gm, '  ');
  writeFileSync(join(cwd, 'whole.yaml'), whole);
  const { kubernetes, virtualMachine } = parse(whole).settings;
  expect({ kubernetes, virtualMachine }).toEqual({
    kubernetes: { enabled: true },
    virtualMachine: { memoryInGB: expect.any(Number), numberCPUs: expect.any(Number) },
  });
  for (const file of ['team.yaml', 'whole.yaml']) {
    const planned = await rdctl(['plan', file, '-o', 'json', '--driver', 'simulated'], { env: home, cwd });
    expect(JSON.parse(planned.out).changes.map(({ path }: { path: string }) => path)).toEqual(['state']);
  }
});

test('Ctrl-C writes nothing', async () => {
  const cwd = temporaryDirectory();
  prompts.confirm.mockResolvedValueOnce(CANCELLED);
  expect(await rdctl(['init'], { env: env(), cwd, ...TERMINAL })).toMatchObject({
    exit: 130,
    out: '',
    err: 'Nothing was written.\n',
  });
  expect(readdirSync(cwd)).toEqual([]);
});

test.each([
  ['output to a file or pipe', ['init'], { interactive: true }],
  ['any flag', ['init', '--all'], TERMINAL],
] as const)('%s means that nothing is asked', async (_, argv, terminal) => {
  const { exit, out } = await rdctl(argv, { env: env(), ...terminal });
  expect(exit).toBe(0);
  expect(out).toMatch(/^kind: Profile$/m);
  expect(prompts.text).not.toHaveBeenCalled();
});

test('the schema beside the profile is replaced by a newer one, and no other file is', async () => {
  const cwd = temporaryDirectory();
  const init = (name: string) => rdctl(['init', '--out-file', name, '--with-schema'], { env: env(), cwd });
  expect((await init('a.yaml')).exit).toBe(0);
  expect(readFileSync(join(cwd, 'a.yaml'), 'utf8')).toMatch(
    /^# yaml-language-server: \$schema=\.\/rdctl\.schema\.json\n/,
  );
  expect(JSON.parse(readFileSync(join(cwd, 'rdctl.schema.json'), 'utf8'))).toEqual(schema);
  writeFileSync(join(cwd, 'rdctl.schema.json'), JSON.stringify({ $id: schema.$id }));
  expect((await init('b.yaml')).exit).toBe(0);
  expect(JSON.parse(readFileSync(join(cwd, 'rdctl.schema.json'), 'utf8'))).toEqual(schema);
  writeFileSync(join(cwd, 'rdctl.schema.json'), '{}');
  expect(await init('c.yaml')).toMatchObject({
    exit: 1,
    err: expect.stringContaining('is not the schema of profiles'),
  });
  expect(readFileSync(join(cwd, 'rdctl.schema.json'), 'utf8')).toBe('{}');
  mkdirSync(join(cwd, 'd'));
  expect((await init('d/d.yaml')).exit).toBe(0);
  expect(existsSync(join(cwd, 'd', 'rdctl.schema.json'))).toBe(true);
});

test.each([
  [['--with-schema'], '--with-schema requires --out-file'],
  [['--with-schema', '--out-file', 'x', '--schema', 'y'], 'mutually exclusive'],
])('%j is refused', async (flags, message) => {
  expect(await rdctl(['init', ...flags], { env: env() })).toMatchObject({
    exit: 1,
    err: expect.stringContaining(message),
  });
});
