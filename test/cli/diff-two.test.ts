import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { policyPrograms } from '../../profiles/policies/places.ts';
import { rdctl as run } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const REG = 'examples/policies/policies.reg';
const PLIST = 'examples/policies/io.rancherdesktop.profile.locked.plist';

function scene(files: Record<string, string> = {}) {
  const home = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text);
  const path = (name: string) => join(home, name);
  // Ignores profiles of this computer's administrator.
  const policies = { places: [], programs: policyPrograms() };
  const diff = (argv: readonly string[], stdin = '') =>
    run(['diff', ...argv], { env: { RDCTL_HOME: home }, stdin, policies });
  return { path, diff };
}

describe('diff A B', () => {
  test('finds no difference between documents of different versions with the same meaning', async () => {
    const { path, diff } = scene({
      'a.yaml': 'version: 4\ntelemetry: false\n',
      'b.json': '{"version": 19, "application": {"telemetry": {"enabled": false}}}',
    });
    const { exit, out, err } = await diff([path('a.yaml'), path('b.json')]);
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out).toBe(
      `--- ${path('a.yaml')} (settings, version 4)\n+++ ${path('b.json')} (settings, version 19)\n\nNo differences.\n`,
    );
  });

  test('compares values, entries and locks, and lists what only one side mentions', async () => {
    const settings = '{version: 19, kubernetes: {port: 6443}, WSL: {integrations: {A: true}}}';
    const { path, diff } = scene({
      'a.yaml': `{apiVersion: rdctl/v1, kind: Profile, settings: ${settings}, locked: {kubernetes: true}}`,
      'b.yaml': `{apiVersion: rdctl/v1, kind: Profile, settings: ${settings.replace('A:', 'B:').replace('6443', '6444')}, locked: {}}`,
    });
    const { exit, out } = await diff([path('a.yaml'), path('b.yaml')]);
    expect(exit).toBe(2);
    expect(out.split('\n').slice(2)).toEqual([
      '',
      '  WSL.integrations[A]: true → (absent)',
      '  WSL.integrations[B]: (absent) → true',
      '  kubernetes.port: 6443 → 6444',
      '  kubernetes.port: locked → not locked',
      '',
      '4 differences',
      '',
    ]);
    expect(JSON.parse((await diff([path('a.yaml'), path('b.yaml'), '-o', 'json'])).out)).toEqual({
      kind: 'Comparison',
      formatVersion: 1,
      before: { label: path('a.yaml'), kind: 'profile, version 19' },
      after: { label: path('b.yaml'), kind: 'profile, version 19' },
      differences: [
        { path: 'WSL.integrations', key: 'A', before: true },
        { path: 'WSL.integrations', key: 'B', after: true },
        { path: 'kubernetes.port', before: 6443, after: 6444 },
      ],
      locks: [{ path: 'kubernetes.port', before: true, after: false }],
      besides: [],
    });
  });

  test('reports differences outside settings and locks', async () => {
    const profile = (rest: string) => `{apiVersion: rdctl/v1, kind: Profile, settings: {version: 19}${rest}}`;
    const { path, diff } = scene({
      'a.yaml': profile(''),
      'b.yaml': profile(', state: unmanaged, prune: []'),
      'c.yaml': profile(', state: stopped, prune: [portForwards]'),
      'd.yaml': profile(', state: started'),
      'bare.yaml': 'version: 19\n',
    });
    const end = async (a: string, b: string, ...more: string[]) => {
      const { exit, out } = await diff([path(a), path(b), ...more]);
      return [exit, out.split('\n').at(-2)];
    };
    expect(await end('a.yaml', 'b.yaml')).toEqual([0, 'No differences.']);
    expect(await end('a.yaml', 'd.yaml')).toEqual([
      0,
      'No differences in settings and locks; state differs, which is not compared.',
    ]);
    expect(await end('a.yaml', 'c.yaml')).toEqual([
      0,
      'No differences in settings and locks; state and prune differ, which is not compared.',
    ]);
    expect(await end('bare.yaml', 'c.yaml')).toEqual([0, 'No differences.']);
    expect(await end('a.yaml', 'c.yaml', '--part', 'locked')).toEqual([0, 'No differences.']);
    const { out } = await diff([path('a.yaml'), path('c.yaml'), '-o', 'json']);
    expect(JSON.parse(out)).toMatchObject({ besides: ['state', 'prune'] });
  });

  test('compares one part of deployment files of different systems', async () => {
    const { diff } = scene();
    const locked = await diff([REG, PLIST, '--part', 'locked']);
    expect(locked).toMatchObject({ exit: 0, out: expect.stringContaining('No differences.') });
    const both = await diff([REG, PLIST]);
    expect(both.exit).toBe(2);
    expect(both.out).toContain('application.autoStart: true → (absent)');
    const defaults = await diff([REG, PLIST, '--part', 'defaults', '-o', 'json']);
    expect(JSON.parse(defaults.out)).toMatchObject({ part: 'defaults', locks: [] });
    expect(JSON.parse(defaults.out).differences.length).toBeGreaterThan(0);
  });

  test('labels settings that are not locked on the live side when one part is compared', async () => {
    const { path, diff } = scene({
      'locked.json': '{"version": 19, "images": {"showAll": true}, "kubernetes": {"port": 6443}}',
    });
    const { exit, out } = await diff(['live', path('locked.json'), '--part', 'locked']);
    expect(exit).toBe(2);
    expect(out.split('\n').slice(3, -1)).toEqual([
      '  kubernetes.port: not locked → locked',
      '  images.showAll: not locked → locked',
      '',
      '2 differences',
    ]);
    const json = await diff(['live', path('locked.json'), '--part', 'locked', '-o', 'json']);
    expect(JSON.parse(json.out)).toMatchObject({
      differences: [],
      locks: [
        { path: 'kubernetes.port', before: false, after: true },
        { path: 'images.showAll', before: false, after: true },
      ],
    });
  });

  test('against live settings, compares only what the file mentions', async () => {
    const { path, diff } = scene({ 'p.yaml': 'version: 19\nimages: {showAll: false}\n' });
    const there = await diff([path('p.yaml'), 'live']);
    expect(there).toMatchObject({ exit: 2, out: expect.stringContaining('images.showAll: false → true') });
    expect(there.out).toContain('+++ live (the defaults)');
    expect(there.out).toContain('1 difference\n');
    expect((await diff(['live', path('p.yaml')])).out).toContain('images.showAll: true → false');
    expect(await diff(['live', '-'], '{"version": 19, "images": {"showAll": true}}')).toMatchObject({ exit: 0 });
  });

  test('masks secrets', async () => {
    const proxy = (password: string) =>
      `version: 19\nexperimental: {virtualMachine: {proxy: {password: ${password}}}}\n`;
    const { path, diff } = scene({ 'a.yaml': proxy('hunter2a'), 'b.yaml': proxy('hunter2b') });
    for (const format of ['text', 'json']) {
      const { exit, out, err } = await diff([path('a.yaml'), path('b.yaml'), '-o', format]);
      expect(exit).toBe(2);
      expect(out).toContain('sensitive');
      expect(out + err).not.toContain('hunter2');
    }
  });

  test('shows errors with their positions', async () => {
    const { path, diff } = scene({ 'a.yaml': 'version: 19\nimages: {showAll: 1}\n', 'b.yaml': 'version: 19\n' });
    expect(await diff([path('b.yaml'), path('a.yaml')])).toMatchObject({
      exit: 3,
      out: '',
      err: expect.stringContaining(`${path('a.yaml')}:2:19: `),
    });
  });

  test.each([
    [['a', 'b', 'c'], 'specify layers with -f'],
    [['-f', 'x', 'a', 'b'], 'specify layers with -f'],
    [['a', '--part', 'locked'], '--part requires two files'],
    [['-', '-'], 'standard input (-) can be specified only once'],
    [['live', 'live'], 'specified only once'],
    [['a', 'b', '--driver', 'simulated'], '--driver cannot be used'],
    [['a', 'b', '--part', 'all'], 'part'],
    [['live', 'none.yaml'], 'no such file or directory'],
  ])('%j', async (argv, message) => {
    expect(await scene().diff(argv)).toMatchObject({ exit: 1, out: '', err: expect.stringContaining(message) });
  });
});

test('does not compare a secret that cannot be read here', async () => {
  const document = (password: string) =>
    `{apiVersion: rdctl/v1, kind: Profile, settings: {version: 19, experimental: {virtualMachine: {proxy: {password: ${password}}}}}, locked: {experimental: {virtualMachine: {proxy: {password: true}}}}}`;
  const { path, diff } = scene({
    'a.yaml': document('{fromEnv: NOT_SET}'),
    'b.yaml': document('hunter2'),
    'none.yaml': '{apiVersion: rdctl/v1, kind: Profile, settings: {version: 19}, locked: {}}',
  });
  const setting = 'experimental.virtualMachine.proxy.password';
  const { exit, out, err } = await diff([path('a.yaml'), path('b.yaml')]);
  expect(exit).toBe(0);
  expect(err).toBe(
    `Note: ${setting} cannot be compared: ${path('a.yaml')} only refers to it, and the environment variable NOT_SET is not set\n`,
  );
  expect(out).toContain('No differences.');
  const absent = await diff([path('a.yaml'), path('none.yaml')]);
  expect(absent).toMatchObject({ exit: 2, err: '' });
  expect(absent.out).toContain(`  ${setting}: (sensitive) → (absent)\n`);
});
