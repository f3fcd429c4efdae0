import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DRIVERS } from '../../src/drivers/index.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { defaultSettings, fillDefaults } from '../../src/settings/defaults.ts';
import { PLATFORMS } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { fieldAt, isSection } from '../../src/settings/fields.ts';
import { leafAt, pointerNames, pointerOf, pointerTo, setLeaf } from '../../src/settings/leaf-paths.ts';
import { isLocked, lockRecord } from '../../src/settings/locks.ts';
import { mergeSettings } from '../../src/settings/merge.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { validate } from '../../src/settings/validate.ts';
import { validate as isSettings } from '../../src/settings/validators/settings-v19.gen.js';
import { expectedValue, valueProblems } from '../../src/settings/value-rules.ts';
import { checkEach } from '../helpers/check-each.ts';

const GIB = 1024 ** 3;

describe('every setting', () => {
  const SETTINGS = FIELDS.filter(({ path }) => path !== 'version').map((field) => [field.path, field] as const);

  test('has a valid default, a description of its values, and a section in the reference', async () => {
    const reference = readFileSync('docs/settings.md', 'utf8');
    await checkEach(SETTINGS, (field, path) => {
      for (const value of [field.default, ...Object.values(field.defaultByPlatform ?? {})])
        expect(valueProblems(field, value)).toEqual([]);
      expect(expectedValue(field)).not.toBe('');
      expect(field.description).toMatch(/^[A-Z].*\.$/s);
      expect(reference.includes(`## \`${path}\``)).toBe(true);
    });
  });

  test('has a flag named after it', async () => {
    await checkEach(SETTINGS, (field, path) => {
      const name = path
        .replace(/([a-z])([A-Z]+)/g, (_, low: string, high: string) => `${low}-${high.toLowerCase()}`)
        .toLowerCase();
      expect(field.flag?.name).toBe(name);
    });
  });

  test.each(DRIVERS.map((driver) => [driver.name, driver] as const))(
    'is in the support matrix of %s',
    async (_, driver) => {
      await checkEach(SETTINGS, ({ path }) => {
        const support = driver.support[path];
        expect(['enforced', 'stored', 'unsupported']).toContain(support?.level);
        if (support?.level === 'unsupported') expect(support.reason.length).toBeGreaterThan(10);
      });
    },
  );
});

test('no two flags share a name', () => {
  const names = FIELDS.flatMap(({ flag }) => (flag ? [flag.name, ...flag.aliases] : []));
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(
    expect.arrayContaining([
      'container-engine',
      'kubernetes-enabled',
      'kubernetes-version',
      'flannel-enabled',
      'experimental.virtual-machine.type',
    ]),
  );
});

test('the declared version is the newest one', () => {
  const versions = readdirSync('schemas/settings')
    .flatMap((name) => /^v(\d+)\.json$/.exec(name)?.[1] ?? [])
    .map(Number);
  expect(versions.sort((a, b) => a - b)).toEqual([SCHEMA_VERSION]);
});

describe('defaults', () => {
  test.each(PLATFORMS)('on %s are complete, valid and in schema order', (platform) => {
    const host = { platform, arch: 'arm64', osRelease: '23.0.0', memoryBytes: 8 * GIB };
    const settings = defaultSettings(host);
    expect(isSettings(settings)).toBe(true);
    expect(validate(settings, { current: settings, platform, arch: 'arm64', osVersion: '14.0' })).toEqual([]);
    expect(Object.keys(settings)).toEqual([
      'version',
      'application',
      'containerEngine',
      'virtualMachine',
      'WSL',
      'kubernetes',
      'portForwarding',
      'images',
      'containers',
      'diagnostics',
      'experimental',
    ]);
  });

  test.each<[string, Parameters<typeof defaultSettings>[0], JsonObject]>([
    [
      'macOS 14',
      { platform: 'darwin', arch: 'arm64', osRelease: '23.1.0' },
      { type: 'vz', mount: { type: 'virtiofs' } },
    ],
    [
      'macOS 13',
      { platform: 'darwin', arch: 'arm64', osRelease: '22.6.0' },
      { type: 'qemu', mount: { type: 'reverse-sshfs' } },
    ],
    [
      'Linux',
      { platform: 'linux', arch: 'x64', osRelease: '6.1.0' },
      { type: 'qemu', mount: { type: 'reverse-sshfs' } },
    ],
    ['no memory to speak of', { platform: 'linux', arch: 'x64', memoryBytes: GIB }, { memoryInGB: 1 }],
    ['a quarter of the memory', { platform: 'linux', arch: 'x64', memoryBytes: 15.6 * GIB }, { memoryInGB: 4 }],
    ['at most 6', { platform: 'darwin', arch: 'x64', memoryBytes: 64 * GIB }, { memoryInGB: 6 }],
    ['2 on Windows', { platform: 'win32', arch: 'x64', memoryBytes: 64 * GIB }, { memoryInGB: 2 }],
    ['2 when unknown', { platform: 'linux', arch: 'x64' }, { memoryInGB: 2 }],
  ])('%s', (_, host, machine) => {
    expect(defaultSettings(host).virtualMachine).toMatchObject(machine);
  });

  test('on Windows, PATH is managed manually', () => {
    expect(defaultSettings({ platform: 'win32', arch: 'x64' }).application.pathManagementStrategy).toBe('manual');
  });

  test('adding defaults keeps lists whole and drops what is unknown or null', () => {
    const stored = {
      version: 3,
      typo: 1,
      experimental: { virtualMachine: { proxy: { noproxy: [] } } },
      diagnostics: { mutedChecks: { A: true, B: null } },
    };
    const filled = fillDefaults(stored, { platform: 'linux', arch: 'x64' });
    expect(filled).toEqual(
      mergeSettings(defaultSettings({ platform: 'linux', arch: 'x64' }), {
        experimental: stored.experimental,
        diagnostics: { mutedChecks: { A: true } },
      }),
    );
    expect(filled.version).toBe(19);
  });

  test.each([
    ['qemu', undefined, { type: 'qemu', mount: { type: 'reverse-sshfs' } }],
    [undefined, '9p', { type: 'qemu', mount: { type: '9p' } }],
    [undefined, 'virtiofs', { type: 'vz', mount: { type: 'virtiofs' } }],
    [undefined, undefined, { type: 'vz', mount: { type: 'virtiofs' } }],
  ])('adding defaults on macOS 14 turns %s and %s into a valid pair', (type, mount, machine) => {
    const stored: JsonObject = { version: 19 };
    if (type) setLeaf(stored, 'virtualMachine.type', type);
    if (mount) setLeaf(stored, 'virtualMachine.mount.type', mount);
    expect(
      fillDefaults(stored, { platform: 'darwin', arch: 'arm64', osRelease: '23.0.0' }).virtualMachine,
    ).toMatchObject(machine);
  });
});

describe('merging', () => {
  const current = mergeSettings(defaultSettings({ platform: 'win32', arch: 'x64' }), {
    WSL: { integrations: { a: true, b: false } },
  });
  test('lists are replaced, maps merged, null removes, unknown keys and the version are ignored', () => {
    const payload = {
      version: 3,
      WSL: { integrations: { a: null, c: true } },
      containerEngine: { allowedImages: { patterns: ['x'] }, other: 1 },
      nothing: {},
    };
    const merged = mergeSettings(current, payload);
    expect(merged.WSL.integrations).toEqual({ b: false, c: true });
    expect(merged.containerEngine).toEqual({
      ...current.containerEngine,
      allowedImages: { enabled: false, patterns: ['x'] },
    });
    expect(isSettings(merged)).toBe(true);
    expect(current.WSL.integrations).toEqual({ a: true, b: false });
  });
  test('an entry can have any name', () => {
    const payload: JsonObject = JSON.parse('{"WSL":{"integrations":{"__proto__":true,"constructor":false}}}');
    const { integrations } = mergeSettings(current, payload).WSL;
    expect(Object.keys(integrations)).toEqual(['a', 'b', '__proto__', 'constructor']);
    expect(Object.getPrototypeOf(integrations)).toBe(Object.prototype);
  });
});

test('a lock record has the structure of the profile', () => {
  const profile = {
    version: 16,
    containerEngine: { name: 'moby', allowedImages: { patterns: [] } },
    WSL: { integrations: {} },
    kubernetes: null,
  };
  const record = lockRecord(profile);
  expect(record).toEqual({
    version: true,
    containerEngine: { name: true, allowedImages: { patterns: true } },
    WSL: { integrations: {} },
    kubernetes: true,
  });
  const held = FIELDS.map(({ path }): string => path).filter((path) => isLocked(record, path));
  expect(held).toEqual([
    'containerEngine.allowedImages.patterns',
    'containerEngine.name',
    'WSL.integrations',
    ...FIELDS.map(({ path }) => path).filter((path) => path.startsWith('kubernetes.')),
  ]);
});

test('paths and pointers', () => {
  expect(fieldAt('kubernetes.port')?.max).toBe(65_535);
  expect(fieldAt('constructor')).toBeUndefined();
  expect(['kubernetes', 'experimental.virtualMachine.mount.9p'].every(isSection)).toBe(true);
  expect(['kubernetes.port', 'WSL.integrations', 'nothing', 'constructor', ''].some(isSection)).toBe(false);
  expect(pointerOf('virtualMachine.mount.type')).toBe('/virtualMachine/mount/type');
  expect(pointerNames(pointerTo(['a/b', '~c', '']))).toEqual(['a/b', '~c', '']);
  expect(leafAt({ a: { b: null } }, 'a.b')).toBeNull();
  expect(leafAt({ a: 1 }, 'a.b')).toBeUndefined();
  expect(leafAt({}, 'constructor.name')).toBeUndefined();
});

test('the precompiled check agrees with the fields on single values', () => {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  const samples: JsonValue[] = [
    null,
    true,
    0,
    1,
    2.5,
    -1,
    70_000,
    2 ** 31,
    '',
    'moby',
    'virtiofs',
    'none',
    [],
    ['a'],
    [1],
    {},
    { a: true },
    { a: 'x' },
    { a: 1 },
  ];
  for (const field of FIELDS.filter(({ path }) => path !== 'version')) {
    for (const sample of samples) {
      // What both reject, or only rules beyond the schema decide.
      if (field.type === 'map<string,string>' || (isObject(sample) && Object.values(sample).includes(null))) continue;
      const changed: JsonObject = structuredClone(settings);
      setLeaf(changed, field.path, sample);
      expect(isSettings(changed), `${field.path} = ${JSON.stringify(sample)}`).toBe(
        valueProblems(field, sample).length === 0,
      );
    }
  }
});
