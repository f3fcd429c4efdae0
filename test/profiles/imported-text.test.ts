import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadAnyFile } from '../../profiles/document/comparison.ts';
import { importedProfile, joinParts, profileDocument } from '../../profiles/document/imported-profile.ts';
import { importedText, jsonText } from '../../profiles/document/write.ts';
import type { JsonObject } from '../../src/json.ts';
import { anyText } from '../helpers/hostile-text.ts';
import { runs } from '../helpers/rounds.ts';

function profileOf(locked: JsonObject, defaults: JsonObject) {
  const part = (settings: JsonObject, which: 'locked' | 'defaults') => ({
    part: which,
    source: which,
    settings: { version: 19, ...settings },
    lost: [],
    platform: 'linux' as const,
  });
  return importedProfile(joinParts([part(locked, 'locked'), part(defaults, 'defaults')]));
}

const textOf = ({ settings, locked }: ReturnType<typeof profileOf>, sources = ['x']) =>
  importedText({ settings, locked, schema: 's', sources });

async function read(text: string) {
  const context = { cwd: '/', env: {}, platform: 'linux', arch: 'x64' } as const;
  const { joined, findings } = await loadAnyFile('-', { ...context, readStdin: async () => Buffer.from(text) });
  expect(findings).toEqual([]);
  return joined;
}

test('YAML and JSON of an import mean what was imported, whatever the texts contain', async () => {
  await fc.assert(
    fc.asyncProperty(
      anyText(),
      anyText(),
      fc.dictionary(anyText(), fc.boolean(), { maxKeys: 4 }),
      async (locked, text, map) => {
        const profile = profileOf(
          { images: { namespace: locked }, diagnostics: { mutedChecks: map } },
          { containers: { namespace: text } },
        );
        for (const written of [textOf(profile), jsonText(profileDocument(profile), 2)]) {
          const back = await read(written);
          expect(back.settings).toEqual(profile.settings);
          expect(back.locked).toEqual(profile.locked);
        }
      },
    ),
    { numRuns: runs(50) },
  );
});

test('a long value, a long key, and a key of several hundred thousand escaped characters', async () => {
  const map = { ['k'.repeat(5000)]: true, ['"'.repeat(700)]: false };
  const long = profileOf({ images: { namespace: 'é'.repeat(400_000) }, diagnostics: { mutedChecks: map } }, {});
  expect((await read(textOf(long))).settings).toEqual(long.settings);
  const escaped = profileOf({ images: { namespace: '\u0001\u2028'.repeat(80_000) } }, {});
  expect((await read(textOf(escaped))).settings).toEqual(escaped.settings);
});

test('says when nothing is locked, and when everything is', async () => {
  const settings = { images: { showAll: true } };
  expect(textOf(profileOf({}, settings))).toContain('\nlocked: {}\n');
  expect((await read(textOf(profileOf(settings, {})))).locked).toEqual(['images.showAll']);
});

test('the name of a source cannot end its comment', async () => {
  const profile = profileOf({ images: { showAll: true } }, {});
  const text = textOf(profile, ['a\nstate: started\r\u2028\u0085.reg']);
  expect(text.split('\n')[2]).toBe('#   a state: started .reg');
  expect((await read(text)).settings).toEqual(profile.settings);
});
