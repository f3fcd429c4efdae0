import { describe, expect, test } from 'vitest';
import { importedProfile, joinParts, profileDocument } from '../../../profiles/document/imported-profile.ts';
import type { JsonObject } from '../../../src/json.ts';
import type { Platform } from '../../../src/settings/field.ts';

const part = (which: 'locked' | 'defaults' | undefined, settings: JsonObject, platform: Platform = 'linux') => ({
  ...(which ? { part: which } : {}),
  source: `${which}.json`,
  settings,
  lost: [],
  platform,
});

/** The lines that a user would see. */
function account(...parts: ReturnType<typeof part>[]): string[] {
  return joinParts(parts).fidelity.map((entry) =>
    entry.outcome === 'lost'
      ? `lost ${entry.part} ${entry.place}: ${entry.reason}`
      : `${entry.outcome} ${entry.part} ${entry.path}${entry.outcome === 'changed' ? `: ${entry.reason}` : ''}`,
  );
}

test('parts of different versions are merged: locked over defaults', () => {
  const joined = joinParts([
    part('defaults', { version: 14, images: { namespace: 'team' }, containerEngine: { name: 'docker' } }),
    part('locked', { version: 9, containerEngine: { name: 'containerd' }, diagnostics: { mutedChecks: {} } }),
  ]);
  expect(joined.settings).toEqual({
    version: 19,
    images: { namespace: 'team' },
    containerEngine: { name: 'containerd' },
    diagnostics: { mutedChecks: {} },
    experimental: { containerEngine: { webAssembly: { enabled: false } } },
  });
  expect(joined.locked).toEqual([
    'containerEngine.name',
    'diagnostics.mutedChecks',
    'experimental.containerEngine.webAssembly.enabled',
  ]);
  expect(joined.findings).toEqual([]);
});

test('a default hidden by a locked value is reported as lost at its position', () => {
  const lines = account(
    part('locked', { version: 19, virtualMachine: { memoryInGB: 4 } }),
    part('defaults', { version: 4, kubernetes: { memoryInGB: 2 } }),
  );
  expect(lines).toContain('lost defaults kubernetes.memoryInGB: the locked profile has the setting');
});

test('every setting is accounted for', () => {
  expect(
    account(
      part('locked', {
        version: 10,
        kubernetes: { enabled: false, hostResolver: true, version: 'v1.30.2+k3s1' },
        experimental: { virtualMachine: { mount: { type: '9p' } } },
        containerEngine: { allowedImages: { enabled: true, locked: true } },
      }),
      part('defaults', { version: 19, kubernetes: { enabled: true, port: 6444 }, imags: { showAll: true } }),
    ).sort(),
  ).toEqual(
    [
      'changed locked version: migrated from 10 to 19',
      'kept locked containerEngine.allowedImages.enabled',
      'changed locked virtualMachine.mount.type: it moved in a later version',
      'changed locked kubernetes.version: it is written in canonical form',
      'kept locked kubernetes.enabled',
      'changed locked experimental.containerEngine.webAssembly.enabled: the application adds it to a locked profile of this version',
      'lost locked kubernetes.hostResolver: the setting was removed and has no effect',
      'lost locked containerEngine.allowedImages.locked: the setting was removed and has no effect',
      'kept defaults kubernetes.port',
      'lost defaults kubernetes.enabled: the locked profile has the setting',
      'lost defaults imags: it is not a setting; did you mean images?',
    ].sort(),
  );
});

describe('what makes the application reject a profile', () => {
  test.each<[string, JsonObject, string]>([
    ['a text for a switch', { kubernetes: { enabled: 'no' } }, 'kubernetes.enabled: .*: expected true or false'],
    [
      'a number out of range',
      { kubernetes: { port: 70000 } },
      'kubernetes.port: .*: expected an integer from 1 to 65535',
    ],
    ['a fraction', { virtualMachine: { memoryInGB: 1.5 } }, 'virtualMachine.memoryInGB: .*'],
    ['a value that is not on the list', { containerEngine: { name: 'podman' } }, 'containerEngine.name: .*'],
    ['null', { kubernetes: { port: null } }, 'kubernetes.port: .*'],
    ['a value for a section', { kubernetes: 5 }, 'kubernetes: .*: expected an object with settings'],
    [
      'an item of a list',
      { containerEngine: { allowedImages: { patterns: ['a', 3] } } },
      'containerEngine.allowedImages.patterns: .*',
    ],
    [
      'null in a list',
      { containerEngine: { allowedImages: { patterns: ['a', null] } } },
      'containerEngine.allowedImages.patterns: .*',
    ],
  ])('%s is lost, with a finding', (_, settings, line) => {
    const profile = part('locked', { version: 19, images: { showAll: true }, ...settings });
    const joined = joinParts([profile]);
    expect(joined.settings).toEqual({ version: 19, images: { showAll: true } });
    expect(joined.locked).toEqual(['images.showAll']);
    expect(joined.findings).toHaveLength(1);
    expect(account(profile)).toEqual([
      'kept locked images.showAll',
      expect.stringMatching(
        new RegExp(`^lost locked ${line.replace('.*', 'the application refuses the whole profile because of it')}`),
      ),
    ]);
  });

  test('only the map entry is lost', () => {
    const entries = { a: true, b: 'x', c: null };
    const joined = joinParts([part('defaults', { version: 19, diagnostics: { mutedChecks: entries } })]);
    expect(joined.settings).toEqual({ version: 19, diagnostics: { mutedChecks: { a: true } } });
    const lost = joined.fidelity.flatMap((entry) => (entry.outcome === 'lost' ? [entry.place] : []));
    expect(lost.sort()).toEqual(['diagnostics.mutedChecks.b', 'diagnostics.mutedChecks.c']);
  });

  test.each<[string, JsonObject, string]>([
    ['a section', { kubernetes: null }, 'kubernetes: null for a section sets nothing'],
    [
      'an inner section',
      { experimental: { virtualMachine: null } },
      'experimental.virtualMachine: null for a section sets nothing',
    ],
    [
      'a section of its version',
      { version: 6, kubernetes: { options: null } },
      'kubernetes.options: null for a section sets nothing',
    ],
    [
      'an entry of switches',
      { WSL: { integrations: { a: null } } },
      'WSL.integrations.a: null for an entry sets nothing',
    ],
    ['a name that is none', { imags: null }, 'imags: it is not a setting'],
  ])('except null for %s: lost without a finding', (_, settings, line) => {
    const profile = part('locked', { version: 19, images: { showAll: true }, ...settings });
    expect(joinParts([profile]).findings).toEqual([]);
    expect(account(profile).filter((each) => each.startsWith('lost'))).toEqual([`lost locked ${line}`]);
  });

  test('without a version it is read as the newest, with a warning', () => {
    const joined = joinParts([part('locked', { images: { showAll: true } })]);
    expect(joined.settings).toEqual({ version: 19, images: { showAll: true } });
    expect(joined.findings).toEqual([]);
    expect(joined.versionless).toMatchObject([{ message: expect.stringContaining('version is missing') }]);
    expect(joined.fidelity).toContainEqual(expect.objectContaining({ outcome: 'changed', path: 'version' }));
  });

  test.each([20, 0, -1, 1.5, '19', null, {}])('version %j: nothing is read', (version) => {
    const joined = joinParts([part('locked', { version, images: { showAll: true } })]);
    expect(joined.settings).toEqual({ version: 19 });
    expect(joined.unread).toHaveLength(1);
  });

  test('on some platforms it is a warning, naming them', () => {
    const joined = joinParts([part('locked', { version: 19, WSL: { integrations: { a: true } } }, 'darwin')]);
    expect(joined.findings).toEqual([]);
    expect(joined.warnings).toMatchObject([
      { message: 'on macOS the application refuses the profile: "WSL.integrations" can be changed on Windows only' },
    ]);
    expect(joined.settings).toMatchObject({ WSL: { integrations: { a: true } } });
  });
});

test('two parts of a kind are refused, and a part of unknown kind is locked', () => {
  const one = part(undefined, { version: 19, images: { showAll: true } });
  expect(joinParts([one]).locked).toEqual(['images.showAll']);
  expect(joinParts([one], 'defaults').locked).toEqual([]);
  expect(() => joinParts([one, part('locked', { version: 19 })])).toThrow(
    'there are two locked profiles: undefined.json and locked.json',
  );
});

test('current names count in an older profile, as in the application', () => {
  const joined = joinParts([part('locked', { version: 10, application: { theme: 'dark' } })]);
  expect(joined.settings).toMatchObject({ application: { theme: 'dark' } });
});

test('custom keys of any name are kept, and a document gets the allowed ones', () => {
  const map: JsonObject = JSON.parse('{"__proto__": true, "constructor": false, "toString": true, "a.b/~c": true}');
  const joined = joinParts([part('locked', { version: 19, diagnostics: { mutedChecks: map } })]);
  expect(JSON.stringify(joined.settings)).toBe(JSON.stringify({ version: 19, diagnostics: { mutedChecks: map } }));
  const profile = importedProfile(joined);
  expect(profileDocument(profile).settings).toEqual({
    version: 19,
    diagnostics: { mutedChecks: { toString: true, 'a.b/~c': true } },
  });
  const lost = profile.fidelity.flatMap((entry) => (entry.outcome === 'lost' ? [[entry.part, entry.place]] : []));
  expect(lost).toEqual([
    ['locked', 'diagnostics.mutedChecks.__proto__'],
    ['locked', 'diagnostics.mutedChecks.constructor'],
  ]);
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test('a secret is among the merged settings, but in no document', () => {
  const proxy = { enabled: true, password: 'hunter2' };
  const joined = joinParts([part('locked', { version: 19, experimental: { virtualMachine: { proxy } } }, 'win32')]);
  expect(JSON.stringify(joined.settings)).toContain('hunter2');
  const profile = importedProfile(joined);
  expect(JSON.stringify(profileDocument(profile))).not.toContain('hunter2');
  expect(profile.settings).toMatchObject({
    experimental: { virtualMachine: { proxy: { password: { fromEnv: 'PROXY_PASSWORD' } } } },
  });
  expect(profile.fidelity).toContainEqual({
    outcome: 'changed',
    part: 'locked',
    path: 'experimental.virtualMachine.proxy.password',
    reason: 'it is a secret, and the result refers to the variable PROXY_PASSWORD instead',
  });
  expect(JSON.stringify(joined.settings)).toContain('hunter2');
});
