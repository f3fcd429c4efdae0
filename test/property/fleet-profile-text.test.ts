import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonText } from '../../profiles/document/write.ts';
import { PARTS } from '../../profiles/formats/format.ts';
import { EXPORTERS } from '../../profiles/formats/index.ts';
import type { JsonObject } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import { removeLeaf, setLeaf } from '../../src/settings/leaf-paths.ts';
import { rdctl } from '../helpers/cli.ts';
import { cannotHold } from '../helpers/format-limits.ts';
import { hostileText } from '../helpers/hostile-text.ts';
import { runs } from '../helpers/rounds.ts';
import { payloadArbitrary } from '../helpers/settings-arbitrary.ts';

/** Where settings accept any text, and where any name; all but the first only on Windows. */
const ANY_TEXT = ['images.namespace', 'experimental.virtualMachine.proxy.username'];
const ANY_NAME = ['diagnostics.mutedChecks', 'WSL.integrations'];

/** Valid settings for the computers that read the format, without secrets. */
function held(format: string, platform: Platform): fc.Arbitrary<JsonObject> {
  const windows = platform === 'win32';
  const text = fc.record(Object.fromEntries(ANY_TEXT.slice(0, windows ? 2 : 1).map((path) => [path, hostileText()])), {
    requiredKeys: [],
  });
  const names = fc.record(
    Object.fromEntries(
      ANY_NAME.slice(0, windows ? 2 : 1).map((path) => [path, fc.uniqueArray(documentKey(), { maxLength: 3 })]),
    ),
    { requiredKeys: [] },
  );
  return fc
    .tuple(payloadArbitrary(platform), text, names)
    .map(([payload, texts, maps]) => {
      for (const [path, value] of Object.entries(texts)) if (value !== undefined) setLeaf(payload, path, value);
      for (const [path, keys] of Object.entries(maps)) if (keys) setLeaf(payload, path, mapOf(keys));
      removeLeaf(payload, 'experimental.virtualMachine.proxy.password');
      return payload;
    })
    .filter((payload) => cannotHold(format, payload).length === 0);
}

/** Documents of the tool may not have a key that reaches the prototype of an object; deployment formats may. */
function documentKey(): fc.Arbitrary<string> {
  return hostileText().filter((key) => !['__proto__', 'constructor', 'prototype'].includes(key));
}

function mapOf(keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.map((key) => [key, true]));
}

async function out(argv: readonly string[], stdin: string): Promise<string> {
  const ran = await rdctl(argv, { stdin });
  expect([ran.exit, ran.exit === 0 ? '' : ran.err]).toEqual([0, '']);
  return ran.out;
}

describe.each(Object.keys(EXPORTERS))('%s', (format) => {
  test.each(['yaml', 'json'])('what is imported as %s is exported as the same bytes', async (output) => {
    const exporter = await EXPORTERS[format]?.();
    if (!exporter) throw new Error(`no exporter ${format}`);
    await fc.assert(
      fc.asyncProperty(held(format, exporter.platform), fc.constantFrom(...PARTS), async (settings, part) => {
        const create = [
          'create-profile',
          '--output',
          format,
          format === 'reg' ? '--type' : '--part',
          part,
          '--input',
          '-',
        ];
        const deployed = await out(create, jsonText(settings));
        const profile = await out(['import-profile', '-', '--part', part, '--strict', '-o', output], deployed);
        expect(await out(create, profile)).toBe(deployed);
      }),
      { numRuns: runs(25) },
    );
  });
});
