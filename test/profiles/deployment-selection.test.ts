import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type DeploymentInput,
  readDeploymentInput,
  settingsInForce,
} from '../../profiles/document/deployment-input.ts';
import { type Selection, selectSettings } from '../../profiles/document/selection.ts';
import { PARTS, type Part } from '../../profiles/formats/format.ts';
import { EXPORTERS } from '../../profiles/formats/index.ts';
import { jsonText } from '../../profiles/formats/json.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { canonicalize } from '../../src/settings/canonical.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import { REMOVED_SETTINGS } from '../../src/settings/left-over.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { copyOf } from '../../src/settings/own.ts';
import { rounds, runs } from '../helpers/rounds.ts';
import { payloadArbitrary } from '../helpers/settings-arbitrary.ts';

const EVERYTHING: Selection = {
  part: 'locked',
  platform: 'linux',
  only: [],
  except: [],
  changedOnly: false,
  keepVersion: false,
  inForce: false,
};

async function inputOf(document: object | string, platform: Platform = 'linux'): Promise<DeploymentInput> {
  const bytes = Buffer.from(typeof document === 'string' ? document : JSON.stringify(document));
  return readDeploymentInput({ name: 'p', label: 'p', bytes, size: bytes.length }, platform);
}

async function select(document: object | string, choice: Partial<Selection> = {}) {
  const selection = { ...EVERYTHING, ...choice };
  return selectSettings(await inputOf(document, selection.platform), selection);
}

const profile = (settings: object, locked?: object) => ({
  apiVersion: 'rdctl/v1',
  kind: 'Profile',
  settings,
  ...(locked ? { locked } : {}),
});

describe('the parts of a profile', () => {
  const settings = { version: 19, containerEngine: { name: 'docker' }, kubernetes: { enabled: false, port: 6444 } };

  test.each<[string, object | undefined, Part, object]>([
    ['locked fields', { kubernetes: { port: true } }, 'locked', { kubernetes: { port: 6444 } }],
    [
      'the others',
      { kubernetes: { port: true } },
      'defaults',
      { containerEngine: { name: 'docker' }, kubernetes: { enabled: false } },
    ],
    ['a locked section', { kubernetes: true }, 'locked', { kubernetes: { enabled: false, port: 6444 } }],
    ['beside a locked section', { kubernetes: true }, 'defaults', { containerEngine: { name: 'docker' } }],
    [
      'what is said not to be locked',
      { kubernetes: { port: false, enabled: true } },
      'locked',
      { kubernetes: { enabled: false } },
    ],
    ['all of one without locks, locked', undefined, 'locked', settings],
    ['all of one without locks, defaults', undefined, 'defaults', settings],
  ])('%s', async (_, locked, part, expected) => {
    const selected = await select(profile(settings, locked), { part });
    expect(selected).toMatchObject({ warnings: [], secret: false });
    expect(selected.settings).toEqual({ version: 19, ...expected });
    expect(selected.notes).toHaveLength(locked ? 0 : 1);
  });

  test('an empty selection', async () => {
    const { settings: left, warnings } = await select(profile(settings, {}));
    expect(left).toEqual({ version: 19 });
    expect(warnings).toEqual(['no settings are selected.']);
    expect((await select({})).warnings).toEqual([]);
  });

  test('together they have everything, and nothing twice', async () => {
    await fc.assert(
      fc.asyncProperty(payloadArbitrary('linux'), fc.func(fc.boolean()), async (payload, isLocked) => {
        const locked: JsonObject = {};
        for (const [path] of leaves(payload)) if (path !== 'version' && isLocked(path)) setLeaf(locked, path, true);
        const parts = await Promise.all(PARTS.map((part) => select(profile(payload, locked), { part })));
        const [held = [], given = []] = parts.map((part) =>
          leaves(part.settings).filter(([path]) => path !== 'version'),
        );
        expect(held.map(([path]) => path)).toEqual(leaves(locked).map(([path]) => path));
        expect(new Set([...held, ...given])).toEqual(new Set(leaves(payload).filter(([path]) => path !== 'version')));
      }),
      { numRuns: runs(40) },
    );
  });
});

describe('chosen settings', () => {
  const settings = {
    kubernetes: { enabled: false, port: 6444 },
    images: { showAll: true },
    experimental: { virtualMachine: { diskSize: '100GiB' } },
  };

  test.each<[Partial<Selection>, object]>([
    [{ only: ['kubernetes'] }, { kubernetes: settings.kubernetes }],
    [{ only: ['kubernetes.port', 'images'] }, { kubernetes: { port: 6444 }, images: { showAll: true } }],
    [{ except: ['kubernetes', 'experimental.virtualMachine'] }, { images: { showAll: true } }],
    [{ only: ['kubernetes'], except: ['kubernetes.port'] }, { kubernetes: { enabled: false } }],
    [{ changedOnly: true }, { kubernetes: settings.kubernetes }],
    [{ changedOnly: true, except: ['kubernetes.port'] }, { kubernetes: { enabled: false } }],
  ])('%j', async (choice, expected) => {
    expect((await select(settings, choice)).settings).toEqual({ version: 19, ...expected });
  });

  test('a section does not match a longer name', async () => {
    const both = { containers: { showAll: false }, containerEngine: { name: 'moby' } };
    expect((await select(both, { only: ['containers'] })).settings).toEqual({
      version: 19,
      containers: { showAll: false },
    });
  });

  test.each<[Partial<Selection>, string, string?]>([
    [
      { only: ['kubernetes.prt'] },
      '--only "kubernetes.prt": no such setting or section',
      'Did you mean kubernetes.port?',
    ],
    [{ except: ['Kubernetes'] }, '--except "Kubernetes": no such setting or section', 'Did you mean kubernetes?'],
    [{ only: ['kubernetes', ''] }, '--only "": no such setting or section'],
    [{ only: ['__proto__'] }, '--only "__proto__": no such setting or section'],
    [{ only: ['constructor.x'] }, '--only "constructor.x": no such setting or section'],
    [{ only: ['kubernetes.'] }, '--only "kubernetes.": no such setting or section', 'Did you mean kubernetes?'],
    [
      { only: ['WSL.integrations.Ubuntu'] },
      '--only "WSL.integrations.Ubuntu": entries of a map cannot be selected individually',
      'Select the whole map: WSL.integrations.',
    ],
    [
      { only: ['kubernetes.memoryInGB'] },
      '--only "kubernetes.memoryInGB": no such setting or section',
      "It is now called virtualMachine.memoryInGB (since settings version 5). With --keep-version, the names of the input's version are accepted too.",
    ],
    [{ except: ['version'] }, '--except version: the application does not start with a profile that has no version'],
  ])('%j is refused', async (choice, message, advice) => {
    const error: unknown = await select(settings, choice).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: 'ERR_USAGE', advice });
    expect(String(error)).toContain(message);
  });

  test('a very long name', async () => {
    const error: unknown = await select(settings, { only: [`a${'.a'.repeat(50_000)}`] }).catch(
      (cause: unknown) => cause,
    );
    expect(error).toMatchObject({ message: `--only "${'a.'.repeat(50)}…": no such setting or section` });
  });

  test('--only and --except of the same settings are complementary', async () => {
    const sections = Object.keys(defaultSettings({ platform: 'linux', arch: 'x64' })).filter(
      (name) => name !== 'version',
    );
    await fc.assert(
      fc.asyncProperty(payloadArbitrary('linux'), fc.subarray(sections, { minLength: 1 }), async (payload, names) => {
        const only = (await select(payload, { only: names })).settings;
        const except = (await select(payload, { except: names })).settings;
        const settings = (each: JsonObject) => leaves(each).filter(([path]) => path !== 'version');
        expect(new Set([...settings(only), ...settings(except)])).toEqual(new Set(settings(payload)));
        for (const name of names) expect(except).not.toHaveProperty(name);
      }),
      { numRuns: runs(40) },
    );
  });
});

describe('changed settings', () => {
  test.each(PLATFORMS)('the defaults of %s are not changes there', async (platform) => {
    const defaults = defaultSettings({ platform, arch: platform === 'darwin' ? 'arm64' : 'x64' });
    const selected = await select(defaults, { platform, changedOnly: true, except: ['virtualMachine.memoryInGB'] });
    expect(selected).toMatchObject({ settings: { version: 19 }, warnings: ['no settings are selected.'] });
  });

  test.each([2, 6])('memory of %d GB is a change where the default depends on the computer', async (memory) => {
    const settings = { virtualMachine: { memoryInGB: memory, numberCPUs: 2 } };
    const of = async (document: JsonObject, platform: Platform) =>
      (await select(document, { platform, changedOnly: true })).settings;
    const written = { version: 19, virtualMachine: { memoryInGB: memory } };
    expect(await of(settings, 'darwin')).toEqual(written);
    expect(await of(settings, 'linux')).toEqual(written);
    expect(await of(settings, 'win32')).toEqual(memory === 2 ? { version: 19 } : written);
    expect(await of({ version: 14, ...settings }, 'linux')).toEqual(written);
  });

  test("are those that differ from the default of the profile's platform", async () => {
    const settings = { application: { pathManagementStrategy: 'manual' }, virtualMachine: { type: 'vz' } };
    expect((await select(settings, { platform: 'win32', changedOnly: true })).settings).toEqual({
      version: 19,
      virtualMachine: { type: 'vz' },
    });
    expect((await select(settings, { platform: 'darwin', changedOnly: true })).settings).toEqual({
      version: 19,
      application: { pathManagementStrategy: 'manual' },
    });
  });

  test('are compared by meaning', async () => {
    const settings = {
      containerEngine: { name: 'docker' },
      experimental: { virtualMachine: { diskSize: '102400MiB' } },
    };
    expect((await select(settings, { changedOnly: true })).settings).toEqual({ version: 19 });
  });
});

describe('older versions', () => {
  const old = {
    version: 4,
    kubernetes: { containerEngine: 'moby', suppressSudo: true, hostResolver: false },
    telemetry: false,
    window: { quitOnClose: true },
  };

  test('become the newest, and a locked profile keeps its freeze', async () => {
    const today = {
      containerEngine: { name: 'moby' },
      application: { adminAccess: false, telemetry: { enabled: false }, window: { quitOnClose: true } },
    };
    const migrated =
      'migrated from version 4 to 19, which 1.24 and later read; --keep-version keeps 4 (1.8 and later).';
    const ended = 'kubernetes.hostResolver is a removed setting that has no effect, and was left out.';
    expect(await select(old, { part: 'defaults' })).toMatchObject({
      settings: { version: 19, ...today },
      warnings: [ended],
      notes: [migrated],
    });
    expect(await select(old)).toMatchObject({
      settings: { version: 19, ...today, experimental: { containerEngine: { webAssembly: { enabled: false } } } },
      warnings: [ended],
      notes: [
        migrated,
        'experimental.containerEngine.webAssembly.enabled is locked to false by a locked profile of version 4.',
      ],
    });
  });

  test.each<[Partial<Selection>, object]>([
    [{}, old],
    [{ only: ['telemetry'] }, { telemetry: false }],
    [{ only: ['application.telemetry'] }, { telemetry: false }],
    [{ only: ['application'] }, { kubernetes: { suppressSudo: true }, telemetry: false, window: old.window }],
    [{ only: ['kubernetes.hostResolver'] }, { kubernetes: { hostResolver: false } }],
    [{ except: ['kubernetes', 'window'] }, { telemetry: false }],
    [{ changedOnly: true }, { kubernetes: { hostResolver: false }, telemetry: false, window: old.window }],
  ])('stay unchanged with %j', async (choice, expected) => {
    const selected = await select(old, { ...choice, keepVersion: true });
    expect(selected).toMatchObject({ settings: { version: 4, ...expected }, warnings: [], notes: [] });
    expect(Object.keys(selected.settings).sort()).toEqual(Object.keys({ version: 4, ...expected }).sort());
    expect(JSON.parse(jsonText(await deploymentTree(selected.settings)))).toEqual(selected.settings);
  });

  test('the older of two names wins, as in the application, and the other is omitted', async () => {
    const settings = { version: 4, kubernetes: { containerEngine: 'moby' }, containerEngine: { name: 'containerd' } };
    expect(await select(settings, { part: 'defaults' })).toMatchObject({
      settings: { version: 19, containerEngine: { name: 'moby' } },
      warnings: [
        '"containerEngine.name" needs settings version 5; the document says 4; it is used anyway.',
        'containerEngine.name was left out: the setting at its name in version 4 takes precedence.',
      ],
    });
  });

  test('the freeze can be omitted', async () => {
    const settings = { version: 10, images: { showAll: false } };
    const [all, except, changed] = await Promise.all([
      select(settings, { only: ['images'] }),
      select(settings, { except: ['experimental.containerEngine'] }),
      select(settings, { changedOnly: true }),
    ]);
    expect(all?.settings).toHaveProperty('experimental.containerEngine.webAssembly.enabled', false);
    expect([except?.settings, changed?.settings]).toEqual(Array(2).fill({ version: 19, images: { showAll: false } }));
  });

  test('locks of a profile use current names', async () => {
    const locked = { containerEngine: { name: true }, application: { telemetry: true } };
    const document = profile(
      { version: 4, kubernetes: { containerEngine: 'moby', suppressSudo: true }, telemetry: false },
      locked,
    );
    const part = async (choice: Partial<Selection>) => (await select(document, choice)).settings;
    expect(await part({ keepVersion: true })).toEqual({
      version: 4,
      kubernetes: { containerEngine: 'moby' },
      telemetry: false,
    });
    expect(await part({ keepVersion: true, part: 'defaults' })).toEqual({
      version: 4,
      kubernetes: { suppressSudo: true },
    });
    expect(await part({ part: 'defaults' })).toEqual({ version: 19, application: { adminAccess: false } });
  });

  test('kept or migrated, the application reads the same', async () => {
    const version = fc.constantFrom(6, 9, 10, 12, 14, 16, 18);
    const older = fc.record(
      {
        version,
        containerEngine: fc.record({ name: fc.constantFrom('moby', 'containerd') }),
        kubernetes: fc.record(
          { port: fc.integer({ min: 1, max: 65_535 }), enabled: fc.boolean() },
          { requiredKeys: [] },
        ),
        images: fc.record({ showAll: fc.boolean() }),
        portForwarding: fc.record({ includeKubernetesServices: fc.boolean() }),
      },
      { requiredKeys: ['version'] },
    );
    await fc.assert(
      fc.asyncProperty(older, fc.constantFrom(...PARTS), async (document, part) => {
        const kept = (await select(document, { part, keepVersion: true })).settings;
        const moved = (await select(document, { part })).settings;
        const read = (settings: JsonObject) =>
          leaves(migrate(settings, { platform: 'linux', locked: part === 'locked', partial: true }));
        expect(read(moved)).toEqual(read(kept));
      }),
      { numRuns: runs(60) },
    );
  });
});

describe('secrets', () => {
  const PASSWORD = 'experimental.virtualMachine.proxy.password';
  const proxy = (password: JsonValue) => ({ experimental: { virtualMachine: { proxy: { password } } } });

  test('a literal secret is written, with a warning', async () => {
    const { settings, warnings, secret } = await select(proxy('hush'), { platform: 'win32' });
    expect(leafAt(settings, PASSWORD)).toBe('hush');
    expect(warnings).toEqual([`${PASSWORD} is written in plain text: anyone who can read the profile can read it.`]);
    expect(secret).toBe(true);
    expect(await select(proxy(''), { platform: 'win32' })).toMatchObject({ warnings: [], secret: false });
    expect(await select(proxy('hush'), { except: ['experimental'] })).toMatchObject({ secret: false });
  });

  test.each([
    [{ fromEnv: 'PROXY\u001b[31m' }, 'the environment variable "PROXY\\u001b[31m"'],
    [{ fromFile: './secret' }, 'the file "./secret"'],
  ])('%j is never resolved', async (reference, from) => {
    const settings = { ...proxy(reference), images: { showAll: false } };
    for (const document of [settings, profile({ version: 19, ...settings })]) {
      const selected = await select(document, { platform: 'win32' });
      expect(selected.settings).toEqual({ version: 19, images: { showAll: false } });
      expect(selected).toMatchObject({
        warnings: [`${PASSWORD} comes from ${from} and was left out: a profile would contain it in plain text.`],
        secret: false,
      });
      expect((await select(document, { platform: 'win32', except: [PASSWORD] })).warnings).toEqual([]);
    }
  });

  test('of settings in force stay where they are', async () => {
    const input = await settingsInForce({ version: 19, ...proxy('hush') }, 'win32');
    const selected = await selectSettings(input, { ...EVERYTHING, inForce: true, only: [PASSWORD] });
    expect(selected.settings).toEqual({ version: 19 });
    expect(selected.warnings[0]).toBe(`${PASSWORD} is a secret and was left out; use --input or --body to write it.`);
  });
});

describe('settings in force', () => {
  const live = {
    version: 19,
    WSL: { integrations: { Ubuntu: true } },
    diagnostics: { mutedChecks: {}, showMuted: true },
    application: { extensions: { installed: { 'a/b': 'latest' } } },
  };
  const inForce = async (choice: Partial<Selection> = {}, settings: JsonObject = live) =>
    selectSettings(await settingsInForce(settings, 'win32'), {
      ...EVERYTHING,
      platform: 'win32',
      inForce: true,
      ...choice,
    });

  test('what describes one computer is omitted, and reported when it has a value', async () => {
    const selected = await inForce();
    expect(selected.settings).toEqual({ version: 19, diagnostics: { showMuted: true } });
    expect(selected).toMatchObject({
      warnings: [
        'application.extensions.installed is specific to this computer and was left out; --only application.extensions.installed writes it.',
        'WSL.integrations is specific to this computer and was left out; --only WSL.integrations writes it.',
      ],
      notes: [],
      secret: false,
    });
  });

  test('unless it is selected by name', async () => {
    expect((await inForce({ only: ['WSL.integrations'] })).settings).toEqual({ version: 19, WSL: live.WSL });
    expect((await inForce({ only: ['WSL'] })).settings).toEqual({ version: 19 });
    expect((await inForce({ except: ['WSL', 'application'] })).warnings).toEqual([]);
  });

  test('of an older application: removed settings are not reported', async () => {
    const { settings, warnings } = await inForce(
      {},
      {
        version: 10,
        virtualMachine: { hostResolver: true },
        kubernetes: { WSLIntegrations: { a: true } },
        images: { showAll: false },
      },
    );
    expect(settings).toMatchObject({ version: 19, images: { showAll: false } });
    expect(warnings.filter((line) => line.includes('hostResolver'))).toEqual([]);
  });

  test('of a newer application keep its version', async () => {
    const { settings, warnings } = await inForce({}, { version: 20, images: { showAll: false, shape: 'round' } });
    expect(settings).toEqual({ version: 20, images: { showAll: false } });
    expect(warnings).toHaveLength(2);
  });
});

describe('what the other part has', () => {
  const settings = { version: 19, containerEngine: { name: 'moby' }, kubernetes: { enabled: true, port: 6444 } };
  const document = profile(settings, { kubernetes: true });
  const elsewhere = async (choice: Partial<Selection>, of: object = document) => (await select(of, choice)).elsewhere;

  test('is counted within the selection', async () => {
    expect(await elsewhere({})).toEqual({ settings: 1, only: [] });
    expect(await elsewhere({ part: 'defaults' })).toEqual({ settings: 2, only: [] });
    expect(await elsewhere({ part: 'defaults', except: ['kubernetes.port'] })).toEqual({ settings: 1, only: [] });
    expect(await elsewhere({ part: 'defaults', changedOnly: true })).toEqual({ settings: 1, only: [] });
    expect(await elsewhere({}, profile(settings))).toEqual({ settings: 0, only: [] });
    expect(await elsewhere({}, settings)).toEqual({ settings: 0, only: [] });
  });

  test('is named when nothing else was selected', async () => {
    expect(await elsewhere({ only: ['containerEngine'] })).toEqual({ settings: 0, only: ['containerEngine'] });
    expect(await elsewhere({ only: ['containerEngine', 'kubernetes'] })).toMatchObject({ only: ['containerEngine'] });
    expect(await elsewhere({ only: ['images'] })).toEqual({ settings: 0, only: [] });
  });
});

test.each(PLATFORMS)('valid settings of %s pass unchanged, without a warning', async (platform) => {
  await fc.assert(
    fc.asyncProperty(payloadArbitrary(platform), async (payload) => {
      const { settings, warnings, secret } = await select(payload, { platform });
      expect(leaves(canonicalize(settings))).toEqual(
        leaves(canonicalize({ version: 19, ...withoutEmptySections(payload) })),
      );
      expect(warnings.filter((line) => !line.includes('in plain text'))).toEqual([]);
      expect(warnings.length).toBe(secret ? 1 : 0);
    }),
    { numRuns: runs(60) },
  );
});

describe('any input', () => {
  const value = fc.oneof(
    fc.constantFrom<JsonValue>(
      null,
      true,
      1,
      -1,
      1.5,
      1e300,
      '',
      'moby',
      '1GiB',
      [],
      ['a'],
      [1],
      {},
      { a: true },
      { 'b/c': 'd' },
    ),
    fc.constantFrom<JsonValue>({ fromEnv: 'X' }, { fromFile: 1 }, { a: null }, { a: { b: 'c' } }, [null], 19),
  );
  const paths = [
    ...FIELDS.map(({ path }) => path),
    ...REMOVED_SETTINGS,
    ...REMOVED_SETTINGS.map((path) => path.slice(0, path.lastIndexOf('.'))),
  ];
  const older = [
    'extensions',
    'telemetry',
    'kubernetes.WSLIntegrations',
    'window.quitOnClose',
    'debug',
    'images',
    'x.y',
  ];
  const document = fc
    .tuple(
      fc.array(fc.tuple(fc.constantFrom(...paths, ...older), value), { maxLength: 6 }),
      fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }),
      fc.option(fc.array(fc.constantFrom(...paths), { maxLength: 3 }), { nil: undefined }),
    )
    .map(([entries, version, locks]) => {
      const settings: JsonObject = version === undefined ? {} : { version };
      for (const [path, each] of entries) setLeaf(settings, path, copyOf(each));
      const locked: JsonObject = {};
      for (const path of locks ?? []) setLeaf(locked, path, true);
      return locks ? profile(settings, locked) : settings;
    });

  test('is refused with a message, or the selection is written completely', async () => {
    const exporters = await Promise.all(Object.values(EXPORTERS).map((load) => load()));
    let exported = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(document, payloadArbitrary('linux')),
        fc.record({
          part: fc.constantFrom(...PARTS),
          keepVersion: fc.boolean(),
          changedOnly: fc.boolean(),
          inForce: fc.boolean(),
        }),
        async (input, choice) => {
          for (const exporter of exporters) {
            try {
              const { settings } = await select(input, { ...choice, platform: exporter.platform });
              const tree = await deploymentTree(settings);
              // It knows the name and the type of everything that was selected.
              expect(JSON.parse(jsonText(tree))).toEqual(settings);
              exporter.text(tree, { part: choice.part, hive: 'hklm' });
              exported += 1;
            } catch (error) {
              if (!(error instanceof RdError)) throw error;
              expect(error.code).toBe('ERR_PROFILE_INVALID');
            }
          }
        },
      ),
      { numRuns: runs(200) },
    );
    expect(exported).toBeGreaterThan(rounds(20, 100));
  });
});

function withoutEmptySections(settings: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => !isObject(value) || Object.keys(value).length > 0),
  );
}
