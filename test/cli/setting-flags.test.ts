import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../cli/arguments.ts';
import { SETTING_FLAGS } from '../../cli/flags.gen.ts';
import { platformName } from '../../cli/platform-name.ts';
import { givenSettings, SETTING_FLAG_TABLE, settingsPayload } from '../../cli/setting-flags.ts';
import { PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';

const TITLES = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' } as const;

/** Why a setting has no flag. */
const WITHOUT_FLAG: Readonly<Record<string, string>> = {
  version: 'cannot be changed',
  'application.extensions.allowed.list': 'a list: set with apply',
  'application.extensions.installed': 'changed by installing and uninstalling',
  'containerEngine.allowedImages.patterns': 'a list: set with apply',
  'experimental.virtualMachine.proxy.noproxy': 'a list: set with apply',
  'WSL.integrations': 'a map: set with apply',
  'diagnostics.mutedChecks': 'a map: set with apply',
};

function given(argv: string[], platform: Platform = 'linux') {
  return givenSettings(parseArguments(argv, SETTING_FLAG_TABLE).given, { platform, text: TITLES[platform] });
}

test('each setting has a flag or a written reason for having none', () => {
  const flagged = new Set<string>(SETTING_FLAGS.map((row) => row.path));
  for (const { path } of FIELDS) {
    expect([path, flagged.has(path) !== path in WITHOUT_FLAG]).toEqual([path, true]);
  }
  expect(flagged.size).toBe(SETTING_FLAGS.length);
});

test('flag names follow from the setting path', () => {
  for (const { name, path } of SETTING_FLAGS) {
    const expected = path.replace(
      /([a-z])([A-Z]+)/g,
      (_all, before: string, capitals: string) => `${before}-${capitals.toLowerCase()}`,
    );
    expect(name).toBe(expected);
  }
});

test('no name means two flags', () => {
  const names = SETTING_FLAGS.flatMap((row) => [row.name, ...row.aliases]);
  expect(new Set(names).size).toBe(names.length);
});

describe('platforms', () => {
  test.each(PLATFORMS)('on %s a flag of another platform parses and is refused', (platform) => {
    for (const row of SETTING_FLAGS) {
      const value = row.values?.[0] ?? { boolean: 'true', integer: '7', string: 'x' }[row.type as 'string'];
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
  ])('%j names itself %s', (kernel, text) => expect(platformName('linux', () => kernel).text).toBe(text));
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
  ])('%j', (argv, message) => expect(() => given(argv)).toThrow(message));

  test('the first mistake in the order of the schema counts', () => {
    expect(() => given(['--container-engine.name=x', '--application.theme=y'])).toThrow('--application.theme');
  });

  test('alias and name share one value, and the last one counts', () => {
    const settings = given(['--container-engine=foo', '--container-engine.name=moby']);
    expect(settings.map(({ typed, value }) => [typed, value])).toEqual([['container-engine.name', 'moby']]);
    expect(() => given(['--container-engine.name=moby', '--container-engine=foo'])).toThrow('--container-engine:');
  });
});

test('the payload holds the version and what was named, in the order of the schema', () => {
  const payload = settingsPayload(
    given(['--kubernetes.enabled=false', '--container-engine', 'docker', '--images.namespace=']),
  );
  expect(JSON.stringify(payload)).toBe(
    '{"version":19,"containerEngine":{"name":"docker"},"kubernetes":{"enabled":false},"images":{"namespace":""}}',
  );
});
