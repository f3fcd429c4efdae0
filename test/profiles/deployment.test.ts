import { describe, expect, test } from 'vitest';
import { jsonText } from '../../profiles/formats/json.ts';
import { plistText } from '../../profiles/formats/plist.ts';
import { regText } from '../../profiles/formats/reg.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import type { JsonObject } from '../../src/json.ts';

/** The contents of the tree, as a Linux computer would read it. */
async function read(settings: JsonObject): Promise<JsonObject> {
  return JSON.parse(jsonText(await deploymentTree(settings)));
}

describe('the version', () => {
  test('is the newest by default, and comes first', async () => {
    expect([...(await deploymentTree({ kubernetes: { port: 1 } }))]).toEqual([
      ['version', 19],
      ['kubernetes', new Map([['port', 1]])],
    ]);
  });

  test('is kept, even when it is newer than any known version', async () => {
    expect(await read({ kubernetes: { port: 1 }, version: 10 })).toEqual({ version: 10, kubernetes: { port: 1 } });
    expect(await read({ version: 20 })).toEqual({ version: 20 });
  });
});

describe('values', () => {
  test('come in schema order, entries of maps in the order of their lower-cased names', async () => {
    const settings = {
      kubernetes: { port: 1 },
      WSL: { integrations: { b: true, B: true, A: true, 10: true, 9: true } },
    };
    const tree = await deploymentTree(settings);
    expect([...tree.keys()]).toEqual(['version', 'WSL', 'kubernetes']);
    expect(
      plistText(tree)
        .match(/<key>..?<\/key>/g)
        ?.map((key) => key.slice(5, -6)),
    ).toEqual(['10', '9', 'A', 'B', 'b']);
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
    const zero = await deploymentTree({ kubernetes: { port: -0 } });
    expect(plistText(zero)).toContain('<integer>0</integer>');
    expect(regText(zero, 'hklm', 'locked')).toContain('"port"=dword:0');
  });

  test('names of object members are ordinary map entries', async () => {
    const settings: JsonObject = JSON.parse('{"WSL":{"integrations":{"__proto__":true,"constructor":false}}}');
    expect(jsonText(await deploymentTree(settings))).toBe(
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
    expect(await read(settings)).toEqual(settings);
  });

  test('extensions were enabled and disabled before their tags were stored', async () => {
    for (const [version, tag] of [
      [6, true],
      [7, '1.0'],
    ] as const) {
      const settings = { version, extensions: { 'a/b': tag } };
      expect(await read(settings)).toEqual(settings);
    }
  });

  test('a removed setting keeps its form', async () => {
    const settings = {
      version: 6,
      virtualMachine: { hostResolver: true },
      kubernetes: { experimentalHostResolver: false },
      containerEngine: { allowedImages: { enabled: true, locked: true } },
      experimental: { virtualMachine: { networkingTunnel: true, mount: { '9p': { msizeInKB: 128 } } } },
    };
    expect(await read(settings)).toEqual(settings);
  });
});
