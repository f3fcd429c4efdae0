import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { migrate, migrateWithOrigins, originOf, versionProblem } from '../../src/settings/migrate.ts';
import { validateShape } from '../../src/settings/older-shapes.ts';
import { validate } from '../../src/settings/validate.ts';
import { runs } from '../helpers/rounds.ts';

const LINUX = { platform: 'linux' } as const;
const PARTIAL = { platform: 'linux', partial: true } as const;
const LOCKED = { platform: 'linux', locked: true } as const;

describe('single steps', () => {
  test.each<[string, JsonObject, JsonObject]>([
    [
      '1: an old mode goes',
      { version: 1, kubernetes: { rancherMode: 'x', version: '1.20.1' } },
      { kubernetes: { version: '1.20.1' } },
    ],
    [
      '4: sudo is turned round',
      { version: 4, kubernetes: { suppressSudo: true } },
      { kubernetes: {}, application: { adminAccess: false } },
    ],
    [
      '4: also as a text',
      { version: 4, kubernetes: { suppressSudo: 'false' } },
      { kubernetes: {}, application: { adminAccess: true } },
    ],
    [
      '4: nonsense stays nonsense',
      { version: 4, kubernetes: { suppressSudo: 'yes' } },
      { kubernetes: {}, application: { adminAccess: 'yes' } },
    ],
    [
      '4: flags become objects',
      { version: 4, telemetry: false, updater: true },
      { application: { telemetry: { enabled: false }, updater: { enabled: true } } },
    ],
    [
      '4: the machine gets a section',
      {
        version: 4,
        kubernetes: {
          memoryInGB: 7,
          numberCPUs: 3,
          hostResolver: false,
          WSLIntegrations: { Debian: true },
          experimental: { socketVMNet: true },
          checkForExistingKimBuilder: true,
        },
      },
      {
        kubernetes: {},
        virtualMachine: { memoryInGB: 7, numberCPUs: 3 },
        WSL: { integrations: { Debian: true } },
        experimental: {},
      },
    ],
    [
      '4: the old value wins',
      { version: 4, debug: true, application: { debug: false } },
      { application: { debug: true } },
    ],
    [
      '5: the window moves whole',
      { version: 5, window: { quitOnClose: true, other: 1 }, autoStart: true },
      { application: { window: { quitOnClose: true, other: 1 }, autoStart: true } },
    ],
    [
      '5: the allow list with all it has',
      { version: 5, containerEngine: { imageAllowList: { enabled: true, locked: true } } },
      { containerEngine: { allowedImages: { enabled: true, locked: true } } },
    ],
    [
      '5: an emptied section goes',
      { version: 5, virtualMachine: { experimental: { socketVMNet: true } } },
      { virtualMachine: {}, experimental: {} },
    ],
    [
      '6: extensions by name',
      {
        version: 6,
        extensions: {
          'org/a:1.2': true,
          'org/b:1': false,
          'host.example:5000/org/c': true,
          'host.example:5000/org/d:9': true,
          'org/a:1.3': true,
        },
      },
      {
        application: {
          extensions: {
            installed: { 'org/a': '1.3', 'host.example:5000/org/c': 'latest', 'host.example:5000/org/d': '9' },
          },
        },
      },
    ],
    [
      '7: notset',
      { version: 7, application: { pathManagementStrategy: 'notset' } },
      { application: { pathManagementStrategy: 'rcfiles' } },
    ],
    [
      '9: entries are trimmed',
      { version: 9, experimental: { virtualMachine: { proxy: { noproxy: [' 10.0.0.0/8 ', '  ', '::1', 3] } } } },
      { experimental: { virtualMachine: { proxy: { noproxy: ['10.0.0.0/8', '::1', 3] } } } },
    ],
    [
      '11: an empty section goes',
      { version: 11, experimental: { virtualMachine: { socketVMNet: true } } },
      { experimental: {} },
    ],
    [
      '13: two fields go',
      {
        version: 13,
        virtualMachine: { hostResolver: true },
        experimental: { virtualMachine: { networkingTunnel: false } },
      },
      { virtualMachine: {}, experimental: {} },
    ],
    [
      '14: the type leaves the experiments',
      { version: 14, experimental: { virtualMachine: { type: 'vz', useRosetta: true, mount: { type: 'virtiofs' } } } },
      {
        virtualMachine: { type: 'vz', useRosetta: true, mount: { type: 'virtiofs' } },
        experimental: { virtualMachine: { mount: {} } },
      },
    ],
    [
      '15: so does the mount type',
      { version: 15, experimental: { virtualMachine: { mount: { type: '9p' } } } },
      { virtualMachine: { mount: { type: '9p' } }, experimental: { virtualMachine: { mount: {} } } },
    ],
    ['18: nothing', { version: 18, application: { theme: 'dark' } }, { application: { theme: 'dark' } }],
    ['19: nothing', { version: 19, unknown: [1] }, { unknown: [1] }],
    [
      'names of objects are names',
      { version: 6, extensions: { constructor: true }, toString: 1 },
      { toString: 1, application: { extensions: { installed: { constructor: 'latest' } } } },
    ],
  ])('%s', (_, before, after) => {
    expect(migrate(before, PARTIAL)).toEqual({ version: 19, ...after });
  });

  test('notset on Windows', () => {
    const before = { version: 4, pathManagementStrategy: 'notset' };
    expect(migrate(before, { platform: 'win32', partial: true })).toEqual({
      version: 19,
      application: { pathManagementStrategy: 'manual' },
    });
  });

  test('the input is not changed', () => {
    const before = { version: 4, kubernetes: { memoryInGB: 3 }, debug: true };
    migrate(before, LINUX);
    expect(before).toEqual({ version: 4, kubernetes: { memoryInGB: 3 }, debug: true });
  });
});

test.each([
  [{ version: 5, application: ['x'], autoStart: true }, 'application'],
  [{ version: 4, virtualMachine: [], kubernetes: { memoryInGB: 4 } }, 'virtualMachine'],
  [{ version: 10, experimental: ['x'] }, 'experimental'],
  [{ version: 12, experimental: 'x' }, 'experimental'],
  [{ version: 16, containerEngine: [] }, 'containerEngine'],
])('what is not a section is left to validation: %j', (document, section) => {
  for (const options of [{ partial: true }, {}, { locked: true }]) {
    const migrated = migrate(document, { platform: 'linux', ...options });
    const issues = validate(migrated, {
      current: defaultSettings({ platform: 'linux', arch: 'x64' }),
      platform: 'linux',
      arch: 'x64',
    });
    expect(issues).toContainEqual(expect.objectContaining({ code: 'section', path: section }));
  }
});

describe('values added by migration', () => {
  const old = { version: 10, images: { showAll: true } };
  test('a complete document: the storage driver, and an empty section that later steps leave', () => {
    expect(migrate(old, LINUX)).toEqual({
      version: 19,
      images: { showAll: true },
      experimental: {},
      containerEngine: { mobyStorageDriver: 'auto' },
    });
  });
  test('a partial document: none', () => {
    expect(migrate(old, PARTIAL)).toEqual({ version: 19, images: { showAll: true } });
  });
  test('a locked profile: WebAssembly stays off, the storage driver stays free', () => {
    const frozen = { containerEngine: { webAssembly: { enabled: false } } };
    expect(migrate(old, LOCKED)).toEqual({ version: 19, images: { showAll: true }, experimental: frozen });
    expect(migrate(old, { ...LOCKED, partial: true })).toEqual({
      version: 19,
      images: { showAll: true },
      experimental: frozen,
    });
    expect(migrate({ ...old, version: 11 }, { ...LOCKED, partial: true })).toEqual({
      version: 19,
      images: { showAll: true },
    });
  });
  test('given values stay', () => {
    const set = { version: 16, containerEngine: { mobyStorageDriver: 'classic' } };
    expect(migrate(set, LINUX).containerEngine).toEqual({ mobyStorageDriver: 'classic' });
    const enabled = { version: 10, experimental: { containerEngine: { webAssembly: { enabled: true } } } };
    expect(migrate(enabled, LOCKED).experimental).toEqual(enabled.experimental);
  });
});

describe('versions', () => {
  const required = 'updating settings requires specifying an API version, but';
  test.each<[JsonValue | undefined, string]>([
    [undefined, `${required} no version was specified`],
    ['19', `${required} "19" is not a proper config version`],
    [null, `${required} "null" is not a proper config version`],
    [true, `${required} "true" is not a proper config version`],
    [2.5, `${required} "2.5" is not a proper config version`],
    [{ a: 1 }, `${required} "{"a":1}" is not a proper config version`],
    [0, `${required} "0" is not a positive number`],
    [-3, `${required} "-3" is not a positive number`],
    [99, 'Changing field "version" via the API isn\'t supported.'],
  ])('%j', (version, message) => {
    expect(versionProblem(version)).toBe(message);
    expect(() => migrate(version === undefined ? {} : { version }, LINUX)).toThrow(RdError);
  });
  test('1 to 19 pass', () => {
    expect(Array.from({ length: 19 }, (_, index) => versionProblem(index + 1))).toEqual(Array(19).fill(undefined));
  });
});

describe('invariants', () => {
  const names = [
    'application',
    'kubernetes',
    'experimental',
    'virtualMachine',
    'extensions',
    'mount',
    'type',
    'proxy',
    'noproxy',
    'window',
    'telemetry',
    'updater',
    'debug',
    'suppressSudo',
    'containerEngine',
    'imageAllowList',
    'WSLIntegrations',
    'socketVMNet',
    'pathManagementStrategy',
    '__proto__',
    'constructor',
  ];
  const { node } = fc.letrec<{ node: JsonValue }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<JsonValue[]>(null, true, 'notset', 3, [' a ', 1], 'org/x:1'),
      fc.dictionary(fc.constantFrom(...names), tie('node'), { maxKeys: 6 }),
    ),
  }));
  const document = fc
    .tuple(fc.integer({ min: 1, max: 19 }), fc.dictionary(fc.constantFrom(...names), node))
    .map(([version, rest]): JsonObject => ({ ...rest, version }));
  const options = fc.record({
    platform: fc.constantFrom('linux', 'darwin', 'win32'),
    locked: fc.boolean(),
    partial: fc.boolean(),
  });

  test('migrating never throws, ends at the newest version, and is idempotent there', () => {
    fc.assert(
      fc.property(document, options, (input, how) => {
        const once = migrate(input, how);
        expect(once.version).toBe(19);
        expect(migrate(once, how)).toEqual(once);
        validateShape(input, Number(input.version));
      }),
      { numRuns: runs(500) },
    );
  });

  test('an empty version stays empty when partial', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 19 }), (version) => {
        expect(migrate({ version }, PARTIAL)).toEqual({ version: 19 });
      }),
    );
  });
});

test('origins lead back to where a value was written', () => {
  const { origins } = migrateWithOrigins(
    { version: 4, kubernetes: { memoryInGB: 1, WSLIntegrations: { a: true } }, images: { showAll: true } },
    PARTIAL,
  );
  expect(originOf(origins, 'virtualMachine.memoryInGB')).toBe('kubernetes.memoryInGB');
  expect(originOf(origins, 'images.showAll')).toBe('images.showAll');
  const chained = migrateWithOrigins({ version: 6, extensions: { 'a/b': true } }, PARTIAL);
  expect(originOf(chained.origins, 'application.extensions.installed')).toBe('extensions');
  const whole = migrateWithOrigins({ version: 5, window: { quitOnClose: 3 } }, PARTIAL);
  expect(originOf(whole.origins, 'application.window.quitOnClose')).toBe('window.quitOnClose');
});
