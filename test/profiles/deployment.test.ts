import { describe, expect, test } from 'vitest';
import { jsonText } from '../../profiles/formats/json.ts';
import { plistText } from '../../profiles/formats/plist.ts';
import { regText } from '../../profiles/formats/reg.ts';
import { type DeploymentTree, deploymentTree } from '../../profiles/formats/tree.ts';
import type { JsonObject } from '../../src/json.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';

/** The contents of the tree, as a Linux computer would read it. */
async function read(settings: JsonObject): Promise<JsonObject> {
  return plain(await deploymentTree(settings));
}

function plain(tree: DeploymentTree): JsonObject {
  return JSON.parse(jsonText(tree));
}

describe('the version', () => {
  test('is the newest by default, and comes first', async () => {
    const { members, warnings } = await deploymentTree({ kubernetes: { port: 1 } });
    expect([...members.keys()]).toEqual(['version', 'kubernetes']);
    expect(members.get('version')).toEqual({ kind: 'integer', value: 19 });
    expect(warnings).toEqual([]);
  });

  test('is kept, even when it is newer than any known version', async () => {
    expect(await read({ kubernetes: { port: 1 }, version: 10 })).toEqual({ version: 10, kubernetes: { port: 1 } });
    expect(await read({ version: 20 })).toEqual({ version: 20 });
  });

  test.each([
    [null, 'got null'],
    ['19', 'got a string'],
    [[19], 'got a list'],
    [true, 'got a boolean'],
    [0, 'expected a whole number from 1'],
    [-1, 'expected a whole number from 1'],
    [18.5, 'expected a whole number from 1'],
    [2 ** 53, 'expected a whole number from 1'],
  ])('%j is invalid, and the application would not start', async (version, message) => {
    await expect(deploymentTree({ version })).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      details: [expect.stringMatching(new RegExp(`^version: .*${message}`))],
    });
  });

  test('an invalid version does not hide other errors', async () => {
    await expect(deploymentTree({ version: null, kubernetes: { port: 'x' } })).rejects.toMatchObject({
      details: [expect.stringContaining('version'), expect.stringContaining('kubernetes.port')],
    });
  });
});

describe('values', () => {
  test('come in schema order, entries of maps in the order of their lower-cased names', async () => {
    const settings = {
      kubernetes: { port: 1 },
      WSL: { integrations: { b: true, B: true, A: true, 10: true, 9: true } },
    };
    const { members } = await deploymentTree(settings);
    expect([...members.keys()]).toEqual(['version', 'WSL', 'kubernetes']);
    const wsl = members.get('WSL');
    const integrations = wsl?.kind === 'section' ? wsl.members.get('integrations') : undefined;
    expect(integrations?.kind === 'map' && [...integrations.members.keys()]).toEqual(['10', '9', 'A', 'B', 'b']);
  });

  // What "lower-cased" means to the compatible tool: each character by itself, in the order of code points.
  test.each([
    [
      ['\u{1f600}', '\uff21'],
      ['\uff21', '\u{1f600}'],
    ],
    [
      ['İ2', 'i1', 'i3'],
      ['i1', 'İ2', 'i3'],
    ],
    [
      ['ΑΣ', 'Ας2'],
      ['Ας2', 'ΑΣ'],
    ],
  ])('names %j are sorted as by the compatible tool', async (names, sorted) => {
    const mutedChecks = Object.fromEntries(names.map((name) => [name, true]));
    const tree = await deploymentTree({ diagnostics: { mutedChecks } });
    const found = (lines: string, pattern: RegExp) => Array.from(lines.matchAll(pattern), ([, name]) => name);
    expect(found(regText(tree, 'hklm', 'locked'), /^"(.*)"=dword:1$/gm)).toEqual(sorted);
    expect(found(plistText(tree), /^ {8}<key>(.*)<\/key>$/gm)).toEqual(sorted);
  });

  test('keep empty lists and maps', async () => {
    const settings = { version: 19, WSL: { integrations: {} }, containerEngine: { allowedImages: { patterns: [] } } };
    expect(await read(settings)).toEqual(settings);
  });

  test('are exact up to the last safe integer', async () => {
    const virtualMachine = { memoryInGB: Number.MAX_SAFE_INTEGER, numberCPUs: Number.MIN_SAFE_INTEGER };
    expect(await read({ virtualMachine })).toEqual({ version: 19, virtualMachine });
    const { members } = await deploymentTree({ kubernetes: { port: -0 } });
    expect(JSON.stringify([...members])).not.toContain('-');
    const kubernetes = members.get('kubernetes');
    const port = kubernetes?.kind === 'section' ? kubernetes.members.get('port') : undefined;
    expect(port?.kind === 'integer' && Object.is(port.value, 0)).toBe(true);
  });

  test.each<[JsonObject, string]>([
    [{ kubernetes: 5 }, 'kubernetes: expected an object with settings, got a number'],
    [{ kubernetes: [] }, 'kubernetes: expected an object with settings, got a list'],
    [{ kubernetes: 'off' }, 'kubernetes: expected an object with settings, got a string'],
    [
      { containerEngine: { allowedImages: { patterns: 'a' } } },
      'containerEngine.allowedImages.patterns: expected a list of strings, got a string',
    ],
    [
      { containerEngine: { allowedImages: { patterns: ['a', 5] } } },
      'containerEngine.allowedImages.patterns[1]: expected a string, got a number',
    ],
    [
      { containerEngine: { allowedImages: { patterns: [null] } } },
      'containerEngine.allowedImages.patterns[0]: expected a string, got null',
    ],
    [{ kubernetes: { version: 1.3 } }, 'kubernetes.version: expected a string, got a number'],
    [{ kubernetes: { enabled: 'yes' } }, 'kubernetes.enabled: expected true or false, got a string'],
    [{ kubernetes: { enabled: 1 } }, 'kubernetes.enabled: expected true or false, got a number'],
    [{ kubernetes: { port: '6443' } }, 'kubernetes.port: expected a number, got a string'],
    [{ kubernetes: { port: 1.7 } }, 'kubernetes.port: expected a whole number, got one with a fraction'],
    [{ WSL: { integrations: ['a'] } }, 'WSL.integrations: expected an object with entries, got a list'],
    [{ WSL: { integrations: 'a' } }, 'WSL.integrations: expected an object with entries, got a string'],
    [{ WSL: { integrations: { a: null } } }, 'WSL.integrations.a: expected true or false, got null'],
    [{ WSL: { integrations: { a: 1 } } }, 'WSL.integrations.a: expected true or false, got a number'],
    [{ WSL: { integrations: { a: 'true' } } }, 'WSL.integrations.a: expected true or false, got a string'],
    [{ WSL: { integrations: { a: { b: true } } } }, 'WSL.integrations.a: expected true or false, got an object'],
    [{ WSL: { integrations: { a: [] } } }, 'WSL.integrations.a: expected true or false, got a list'],
    [
      { application: { extensions: { installed: { 'b/x': true } } } },
      'application.extensions.installed.b/x: expected a string, got a boolean',
    ],
    [{ WSL: { integrations: { '': 1 } } }, 'WSL.integrations[""]: expected true or false, got a number'],
    [{ WSL: { integrations: { 'a\u001b[2J': 1 } } }, 'WSL.integrations["a\\u001b[2J"]: expected true or false'],
    [{ WSL: { integrations: { 'a\u202eb': 1 } } }, 'WSL.integrations["a\\u202eb"]: expected true or false'],
  ])('%j is refused', async (settings, message) => {
    await expect(deploymentTree(settings)).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      details: [expect.stringContaining(message)],
    });
  });

  test.each(['9007199254740992', '-9007199254740993', '1e300', '1e999'])(
    'the number %s loses digits when it is read',
    async (number) => {
      const settings: JsonObject = JSON.parse(`{"diagnostics":{"connectivity":{"timeout":${number}}}}`);
      await expect(deploymentTree(settings)).rejects.toMatchObject({
        details: [
          'diagnostics.connectivity.timeout: expected a number from -9007199254740991 to 9007199254740991; ' +
            'larger numbers lose digits when JSON is read',
        ],
      });
    },
  );

  test('every error is reported, without values', async () => {
    const settings = {
      kubernetes: { enabled: 'secret-1', port: 'secret-2' },
      WSL: { integrations: { a: 'secret-3' } },
    };
    const error = await deploymentTree(settings).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: expect.not.stringContaining('secret'),
      details: [
        'WSL.integrations.a: expected true or false, got a string',
        'kubernetes.port: expected a number, got a string',
        'kubernetes.enabled: expected true or false, got a string',
      ],
    });
  });

  test('every setting refuses a value of another type', async () => {
    for (const { path, type } of FIELDS) {
      if (path === 'version') continue;
      const wrong = type === 'boolean' ? 1 : true;
      const names = path.split('.');
      const settings = names.reduceRight<JsonObject | number | boolean>((below, name) => ({ [name]: below }), wrong);
      if (typeof settings !== 'object') throw new Error('no settings');
      await expect(deploymentTree(settings), path).rejects.toMatchObject({
        details: [expect.stringMatching(`^${path}: expected .*, got a (?:number|boolean)$`)],
      });
    }
  });
});

describe('what is omitted', () => {
  test.each<[JsonObject, string]>([
    [{ Kubernetes: {} }, 'Kubernetes is not a setting and was left out. Did you mean kubernetes?'],
    [{ images: { showall: true } }, 'images.showall is not a setting and was left out. Did you mean images.showAll?'],
    [{ 'a\nb': 1 }, '["a\\nb"] is not a setting and was left out.'],
    [{ images: { ['x'.repeat(1000)]: 1 } }, `images["${'x'.repeat(80)}…"] is not a setting and was left out.`],
    [{ telemetry: true }, 'telemetry is not a setting and was left out.'],
    [{ kubernetes: {} }, 'kubernetes contains no settings and was left out.'],
    [{ application: { window: {} } }, 'application.window contains no settings and was left out.'],
    [{ kubernetes: null }, 'kubernetes is null and was left out.'],
    [{ containers: { showAll: null } }, 'containers.showAll is null and was left out.'],
    [{ WSL: { integrations: null } }, 'WSL.integrations is null and was left out.'],
  ])('%j causes a warning', async (settings, warning) => {
    const tree = await deploymentTree(settings);
    expect(tree.warnings).toEqual([warning]);
    expect(plain(tree)).toEqual({ version: 19 });
  });

  test('names of object members are not settings', async () => {
    const settings: JsonObject = JSON.parse('{"__proto__":{"a":1},"constructor":{},"kubernetes":{"toString":1}}');
    const tree = await deploymentTree(settings);
    expect(tree.warnings).toHaveLength(3);
    expect(plain(tree)).toEqual({ version: 19 });
  });

  test('names of object members are ordinary map entries', async () => {
    const settings: JsonObject = JSON.parse('{"WSL":{"integrations":{"__proto__":true,"constructor":false}}}');
    const { members, warnings } = await deploymentTree(settings);
    expect(warnings).toEqual([]);
    expect(jsonText({ members })).toBe(
      '{\n  "version": 19,\n  "WSL": {\n    "integrations": {\n      "__proto__": true,\n      "constructor": false\n    }\n  }\n}\n',
    );
  });
});

describe('older versions', () => {
  test('are read by their old names', async () => {
    const settings = {
      version: 4,
      kubernetes: { memoryInGB: 8, suppressSudo: true, WSLIntegrations: { Ubuntu: true }, containerEngine: 'moby' },
      containerEngine: { imageAllowList: { enabled: true, patterns: ['a'] } },
      telemetry: false,
      debug: true,
    };
    const tree = await deploymentTree(settings);
    expect(tree.warnings).toEqual([]);
    expect(plain(tree)).toEqual(settings);
  });

  test('check old settings by their old types', async () => {
    const settings = { version: 4, kubernetes: { memoryInGB: '8', WSLIntegrations: { a: 1 } }, telemetry: 'no' };
    await expect(deploymentTree(settings)).rejects.toMatchObject({
      details: [
        'kubernetes.memoryInGB: expected a number, got a string',
        'kubernetes.WSLIntegrations.a: expected true or false, got a number',
        'telemetry: expected true or false, got a string',
      ],
    });
  });

  test('extensions were enabled and disabled before their tags were stored', async () => {
    for (const [version, tag] of [
      [6, true],
      [7, '1.0'],
    ] as const) {
      const settings = { version, extensions: { 'a/b': tag } };
      expect(await read(settings)).toEqual(settings);
    }
    await expect(deploymentTree({ version: 7, extensions: { 'a/b': 1 } })).rejects.toMatchObject({
      details: ['extensions.a/b: expected true or false or a string, got a number'],
    });
    await expect(deploymentTree({ version: 7, extensions: ['a'] })).rejects.toMatchObject({
      details: ['extensions: expected an object with entries, got a list'],
    });
  });

  test('a removed setting keeps its form', async () => {
    const settings = {
      version: 6,
      virtualMachine: { hostResolver: true },
      kubernetes: { experimentalHostResolver: false },
      containerEngine: { allowedImages: { enabled: true, locked: true } },
      experimental: { virtualMachine: { networkingTunnel: true, mount: { '9p': { msizeInKB: 128 } } } },
    };
    const tree = await deploymentTree(settings);
    expect(tree.warnings).toEqual([]);
    expect(plain(tree)).toEqual(settings);
    await expect(
      deploymentTree({
        version: 6,
        virtualMachine: { hostResolver: 1.5 },
        kubernetes: { experimentalHostResolver: [1] },
      }),
    ).rejects.toMatchObject({
      details: [
        'virtualMachine.hostResolver: expected a whole number, got one with a fraction',
        'kubernetes.experimentalHostResolver[0]: expected a string, got a number',
      ],
    });
  });

  test('an old name means nothing in current settings', async () => {
    const { warnings } = await deploymentTree({ version: 19, kubernetes: { memoryInGB: 4 } });
    expect(warnings).toEqual(['kubernetes.memoryInGB is not a setting and was left out.']);
  });
});
