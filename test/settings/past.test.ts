import { describe, expect, test } from 'vitest';
import { downgrade } from '../../src/settings/downgrade.ts';
import { fieldAt } from '../../src/settings/fields.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { laterPlace } from '../../src/settings/left-over.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { PAST } from '../../src/settings/past.gen.ts';
import { pastSetting, pastText } from '../../src/settings/past.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { unknownKeys } from '../../src/settings/unknown-keys.ts';
import { rdctl } from '../helpers/cli.ts';

const moved = PAST.filter(({ now, dropped }) => now !== undefined && !dropped);
const ended = PAST.filter(({ now, dropped }) => now === undefined || dropped);

test('no path is declared twice, nor is one a setting of today; each leads to one', () => {
  expect(new Set(PAST.map(({ path }) => path)).size).toBe(PAST.length);
  for (const { path, now } of PAST) {
    expect(fieldAt(path), path).toBeUndefined();
    if (now !== undefined) expect(fieldAt(now), path).toBeDefined();
  }
});

test.each(moved.map((row) => [row.path, row] as const))('migrations move %s to where it is said to be', (path, row) => {
  expect(laterPlace(path, SCHEMA_VERSION)).toBe(row.now);
});

test.each(moved.flatMap((row) => (row.from === undefined ? [] : [[row.path, row] as const])))(
  '%s comes back from a migration with the meaning it had',
  (path, { now = 'version', from = 0, to = 0, inverted }) => {
    for (const version of [from, to]) {
      const settings = { version: SCHEMA_VERSION };
      setLeaf(settings, now, inverted ? true : 'kept');
      const older = downgrade(settings, version);
      expect(leafAt(older, path)).toBe(inverted ? false : 'kept');
      const again = migrate(older, { platform: 'linux', partial: true });
      expect(leafAt(again, now)).toBe(inverted ? true : 'kept');
    }
  },
);

test.each(ended.map(({ path }) => path))('no migration takes over %s', (path) => {
  expect(laterPlace(path, SCHEMA_VERSION)).toBeUndefined();
});

describe('a name of earlier releases', () => {
  test.each([
    [
      'kubernetes.suppressSudo',
      'is now called application.adminAccess, with the opposite meaning (since settings version 5)',
    ],
    [
      '--kubernetes.suppress-sudo',
      'is now called application.adminAccess, with the opposite meaning (since settings version 5)',
    ],
    ['virtualMachine.hostResolver', 'was removed; 1.15 was the last release with it'],
    ['kubernetes.rancherMode', 'was removed'],
    ['window.quitOnClose', 'is now called application.window.quitOnClose'],
  ])('%s %s', (name, text) => {
    const past = pastSetting(name);
    expect(past && pastText(past)).toBe(text);
  });

  test('is said in a document with its line', async () => {
    const text =
      'apiVersion: rdctl/v1\nkind: Profile\nsettings:\n  version: 19\n  kubernetes:\n    suppressSudo: true\n';
    const { exit, out, err } = await rdctl(['validate', '-'], { stdin: text });
    expect(exit).not.toBe(0);
    expect(out + err).toContain(
      'unknown setting "kubernetes.suppressSudo", which is now called application.adminAccess, with the opposite meaning (since settings version 5)',
    );
  });

  test('leads to its successor in a document, or to no guess', () => {
    const found = unknownKeys({
      kubernetes: { suppressSudo: true, version: '' },
      virtualMachine: { hostResolver: true },
    });
    expect(found).toEqual([
      { pointer: '/kubernetes/suppressSudo', path: 'kubernetes.suppressSudo', suggestion: 'application.adminAccess' },
      { pointer: '/virtualMachine/hostResolver', path: 'virtualMachine.hostResolver' },
    ]);
  });

  test('is named itself where its whole section is gone, and an empty one is named as such', () => {
    const found = unknownKeys({ containerEngine: { imageAllowList: { enabled: true, other: 1 } }, window: {} });
    expect(found.map(({ path, suggestion }) => [path, suggestion])).toEqual([
      ['containerEngine.imageAllowList.enabled', 'containerEngine.allowedImages.enabled'],
      ['containerEngine.imageAllowList.other', undefined],
      ['window', undefined],
    ]);
  });

  test.each([
    [
      ['set', '--virtual-machine.host-resolver=true'],
      /host-resolver\nvirtualMachine\.hostResolver was removed; .* Leave it out\.\n/,
    ],
    [
      ['start', '--kubernetes.suppress-sudo'],
      /kubernetes\.suppressSudo is now called application\.adminAccess, with the opposite meaning .* Use --application\.admin-access\.\n/,
    ],
    [
      ['explain', 'kubernetes.suppressSudo'],
      /"kubernetes\.suppressSudo" is now called application\.adminAccess, with the opposite meaning/,
    ],
    [['explain', 'virtualMachine.hostResolver'], /"virtualMachine\.hostResolver" was removed/],
    [['version', '--debug'], /^Error: unknown flag: --debug\n(?!debug is)/],
  ])('%j says what became of it', async (argv, text) => {
    const { exit, err } = await rdctl(argv);
    expect(exit).not.toBe(0);
    expect(err).toMatch(text);
  });
});
