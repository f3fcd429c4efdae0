import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { EXPORTERS } from '../../profiles/formats/index.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { checkSettings } from '../../src/settings/check.ts';
import { PLATFORMS } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { equal } from '../../src/settings/own.ts';
import { parseDocument } from '../../src/settings/parse.ts';

// Every setting with a valid value that is not its default, as each format writes it.

const TEXT = readFileSync(resolve('test/golden/profiles/full.settings.json'), 'utf8');
const FULL: JsonObject = JSON.parse(TEXT);

describe('the sample settings', () => {
  test('are complete, and none is a default on any system', () => {
    for (const field of FIELDS) {
      const value = leafAt(FULL, field.path);
      expect(value, field.path).toBeDefined();
      const defaults: JsonValue[] = [field.default, ...Object.values(field.defaultByPlatform ?? {})];
      // Where every value is the default of some system there is no other.
      if (field.path === 'version' || new Set(defaults).size === field.enum?.length) continue;
      for (const other of defaults) expect(equal(other, value), field.path).toBe(false);
    }
  });

  test.each(PLATFORMS)('are valid on %s, except what it does not have and what conflicts', async (platform) => {
    const document = parseDocument(TEXT, 'full.settings.json');
    expect(document.findings).toEqual([]);
    const { findings } = await checkSettings({ document, at: '', settings: FULL }, { platform, arch: 'arm64' });
    const wrong = findings.filter(({ code }) => !['platform', 'conflict', 'kubernetes-version'].includes(code));
    expect(wrong).toEqual([]);
  });
});

test.each(Object.keys(EXPORTERS))('as %s', async (format) => {
  const exporter = await EXPORTERS[format]?.();
  expect(exporter?.name).toBe(format);
  const tree = await deploymentTree(FULL);
  const text = exporter?.text(tree, { hive: 'hklm', part: 'locked' });
  await expect(text).toMatchFileSnapshot(`../golden/profiles/full.${format}`);
});
