import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonExporter, jsonText } from '../../profiles/formats/json.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import type { JsonObject } from '../../src/json.ts';
import { FLEET_VERSIONS, profileArbitrary } from '../helpers/fleet-arbitrary.ts';
import { anyText } from '../helpers/hostile-text.ts';
import { runs } from '../helpers/rounds.ts';

async function json(settings: JsonObject): Promise<string> {
  return jsonText(await deploymentTree(settings));
}

test('two spaces per level, the version first, schema order, a final newline', async () => {
  const settings = {
    kubernetes: { port: 6443 },
    containerEngine: { allowedImages: { patterns: ['a'], enabled: true } },
    WSL: { integrations: {} },
  };
  expect(await json(settings)).toBe(`{
  "version": 19,
  "containerEngine": {
    "allowedImages": {
      "enabled": true,
      "patterns": [
        "a"
      ]
    }
  },
  "WSL": {
    "integrations": {}
  },
  "kubernetes": {
    "port": 6443
  }
}
`);
});

test('any profile is read back unchanged', async () => {
  const texts = { value: anyText(), key: anyText() };
  const profiles = fc.oneof(...FLEET_VERSIONS.map((version) => profileArbitrary(version, texts)));
  await fc.assert(
    fc.asyncProperty(profiles, async (settings) => {
      const text = await json(settings);
      expect(JSON.parse(text)).toEqual(settings);
      // Well-formed UTF-8, also where a value holds an unpaired surrogate.
      expect(Buffer.from(text).toString()).toBe(text);
      expect(text.startsWith(`{\n  "version": ${String(settings.version)}`)).toBe(true);
    }),
    { numRuns: runs(150) },
  );
});

test('as an exporter', async () => {
  const tree = await deploymentTree({});
  expect(jsonExporter.text(tree, { hive: 'hklm', part: 'locked' })).toBe('{\n  "version": 19\n}\n');
  expect(jsonExporter.fileName('defaults', 'hklm')).toBe('defaults.json');
});
