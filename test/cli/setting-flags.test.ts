import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../cli/arguments/arguments.ts';
import { SETTING_FLAGS } from '../../cli/arguments/flags.gen.ts';
import { givenSettings, SETTING_FLAG_TABLE, settingsPayload } from '../../cli/arguments/setting-flags.ts';
import { platformName } from '../../cli/arguments/values.ts';
import type { JsonObject } from '../../src/json.ts';
import { type FieldType, PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';

const TITLES = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' } as const;

function given(argv: string[], platform: Platform = 'linux') {
  return givenSettings(parseArguments(argv, SETTING_FLAG_TABLE).given, { platform, text: TITLES[platform] });
}

test('every setting has one flag, the version none', () => {
  expect(SETTING_FLAGS.map(({ path }) => path)).toEqual(
    FIELDS.map(({ path }) => path).filter((path) => path !== 'version'),
  );
});

test('flag names follow from the setting path', () => {
  for (const { name, path } of SETTING_FLAGS) {
    const expected = path.replace(
      /([a-z])([A-Z]+)/g,
      (_all, before: string, capitals: string) => `${before}-${capitals.toLowerCase()}`,
    );
    expect(name).toBe(expected.replace(/^WSL/, 'wsl'));
  }
});

test('no name stands for two flags', () => {
  const names = SETTING_FLAGS.flatMap((row) => [row.name, ...row.aliases]);
  expect(new Set(names).size).toBe(names.length);
});

const SAMPLES: Readonly<Record<FieldType, string>> = {
  boolean: 'true',
  integer: '7',
  string: 'x',
  'string[]': 'x',
  'map<string,boolean>': 'x=true',
  'map<string,string>': 'x=y',
};

describe('platforms', () => {
  test.each(PLATFORMS)('on %s a flag for another platform is parsed and refused', (platform) => {
    for (const row of SETTING_FLAGS) {
      const value = row.values?.[0] ?? SAMPLES[row.type];
      const act = () => given([`--${row.name}=${value}`], platform);
      if (row.platforms.includes(platform)) expect(act()).toHaveLength(1);
      else expect(act).toThrow(`option --${row.name} is not available on ${TITLES[platform]}`);
    }
  });

  test('the flag of a security setting is refused everywhere', () => {
    for (const platform of PLATFORMS) {
      expect(() => given(['--application.extensions.allowed.enabled'], platform)).toThrow('is not available on');
    }
  });

  test.each([
    ['Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)', 'Linux in a WSL partition'],
    ['Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)', 'Linux'],
    ['', 'Linux'],
  ])('%j identifies itself as %s', (kernel, text) => expect(platformName('linux', () => kernel).text).toBe(text));
  test('macOS and Windows', () => {
    expect([platformName('darwin').text, platformName('win32').text]).toEqual(['macOS', 'Windows']);
  });
});

describe('values', () => {
  test.each([
    [
      ['--container-engine', 'foo'],
      `invalid value for option --container-engine: "foo"; must be 'containerd', 'docker', or 'moby'`,
    ],
    [
      ['--application.path-management-strategy=x'],
      `invalid value for option --application.path-management-strategy: "x"; must be 'manual' or 'rcfiles'`,
    ],
    [
      ['--virtual-machine.mount.type=foo'],
      `invalid value for option --virtual-machine.mount.type: "foo"; must be 'reverse-sshfs', '9p', or 'virtiofs'`,
    ],
  ])('%j', (argv, message) => expect(() => given(argv)).toThrow(message));

  test('the first error in schema order is reported', () => {
    expect(() => given(['--container-engine.name=x', '--application.theme=y'])).toThrow('--application.theme');
  });

  test('alias and name share one value, and the last one wins', () => {
    const settings = given(['--container-engine=foo', '--container-engine.name=moby']);
    expect(settings.map(({ typed, value }) => [typed, value])).toEqual([['container-engine.name', 'moby']]);
    expect(() => given(['--container-engine.name=moby', '--container-engine=foo'])).toThrow('--container-engine:');
  });
});

test('the payload has the version and the given settings, in schema order', () => {
  const payload = settingsPayload(
    given(['--kubernetes.enabled=false', '--container-engine', 'docker', '--images.namespace=']),
  );
  expect(JSON.stringify(payload)).toBe(
    '{"version":19,"containerEngine":{"name":"docker"},"kubernetes":{"enabled":false},"images":{"namespace":""}}',
  );
});

describe('lists and maps', () => {
  const payload = (argv: string[], live?: JsonObject) => settingsPayload(given(argv, 'win32'), 19, live);
  const patterns = (...values: string[]) => {
    const sent = payload(values.map((value) => `--container-engine.allowed-images.patterns=${value}`));
    return leafAt(sent, 'containerEngine.allowedImages.patterns');
  };
  const muted = (argv: string[], live?: JsonObject) =>
    leafAt(
      payload(
        argv.map((value) => `--diagnostics.muted-checks=${value}`),
        live,
      ),
      'diagnostics.mutedChecks',
    );

  test('a list is the sum of its occurrences, each an entry or a JSON array', () => {
    expect(patterns('busybox', 'docker.io/library/')).toEqual(['busybox', 'docker.io/library/']);
    expect(patterns('["a","b"]')).toEqual(['a', 'b']);
    expect(patterns('a', ' ["b"]', 'c')).toEqual(['a', 'b', 'c']);
    expect(patterns('[]')).toEqual([]);
    expect(patterns('a,b')).toEqual(['a,b']);
  });

  test('a map takes single entries or a JSON object, and null removes an entry', () => {
    expect(muted(['A=true', 'B=0', 'C=null'])).toEqual({ A: true, B: false, C: null });
    expect(muted(['{"A":true,"B":null}', 'A=false'])).toEqual({ A: false, B: null });
    expect(muted(['a=b=true'])).toEqual({ 'a=b': true });
    expect(muted(['__proto__=true'])).toEqual(JSON.parse('{"__proto__":true}'));
    expect(payload(['--wsl.integrations', 'Ubuntu=true'])).toMatchObject({ WSL: { integrations: { Ubuntu: true } } });
    expect(payload(['--WSL.integrations', 'Ubuntu=true'])).toMatchObject({ WSL: { integrations: { Ubuntu: true } } });
  });

  test('entries that live beside the named ones are sent with them', () => {
    const live = { diagnostics: { mutedChecks: { A: true, B: true } } };
    expect(muted(['B=null', 'C=true'], live)).toEqual({ A: true, B: null, C: true });
  });

  test.each([
    ['container-engine.allowed-images.patterns', '["a"', 'be an entry or a JSON array of strings'],
    ['container-engine.allowed-images.patterns', '[1]', 'be an entry or a JSON array of strings'],
    ['diagnostics.muted-checks', 'A', 'be KEY=true, KEY=false, KEY=null, or a JSON object of these'],
    ['diagnostics.muted-checks', 'A=maybe', 'be KEY=true, KEY=false, KEY=null, or a JSON object of these'],
    ['diagnostics.muted-checks', '=true', 'be KEY=true, KEY=false, KEY=null, or a JSON object of these'],
    ['diagnostics.muted-checks', '{"A":"true"}', 'be KEY=true, KEY=false, KEY=null, or a JSON object of these'],
    ['diagnostics.muted-checks', '{', 'be KEY=true, KEY=false, KEY=null, or a JSON object of these'],
  ])('--%s %s is refused', (name, value, expected) => {
    expect(() => given([`--${name}`, value])).toThrow(
      `invalid value for option --${name}: ${JSON.stringify(value)}; must ${expected}`,
    );
  });

  test('installed extensions cannot be set here', () => {
    expect(() => given(['--application.extensions.installed', 'a=b'])).toThrow(
      expect.objectContaining({ advice: expect.stringContaining('rdctl extension install') }),
    );
  });
});
