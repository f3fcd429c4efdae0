import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PARTS } from '../../profiles/formats/format.ts';
import { plistImporter } from '../../profiles/formats/plist.ts';
import type { JsonObject } from '../../src/json.ts';
import { isXmlText } from '../helpers/hostile-text.ts';
import { flatSettings } from '../helpers/proof/expected.ts';
import {
  exported,
  FULL,
  fileWriter,
  GOLDEN,
  goldens,
  LOCKED,
  RANDOM,
  randomProfiles,
  SEED,
  UNITS,
} from '../helpers/proof/profiles.ts';
import { whyNoIndependentPrograms } from '../helpers/proof/program.ts';
import { binaryPlists, type PlistValue, readJsons, readPlists } from '../helpers/proof/python.ts';
import { flatJson, flatRead, payloadSettings } from '../helpers/proof/readings.ts';
import { againstPlistRules } from '../helpers/proof/xmllint.ts';

describe.skipIf(whyNoIndependentPrograms() !== undefined)(
  'property lists and JSON, as Python and xmllint read them',
  () => {
    const written = fileWriter();

    describe.each([
      { format: 'plist', settingsIn: (value: PlistValue) => value },
      { format: 'mobileconfig', settingsIn: payloadSettings },
    ])('$format, by plistlib and by xmllint', ({ format, settingsIn }) => {
      async function expectRead(profiles: readonly JsonObject[], options = LOCKED): Promise<void> {
        const texts = await Promise.all(profiles.map((profile) => exported(format, profile, options)));
        const paths = written(texts, `.${format}`);
        expect(againstPlistRules(paths)).toBe('');
        const read = readPlists(paths).map((each) => flatRead(each, settingsIn));
        expect(read).toEqual(profiles.map((profile) => flatSettings(profile)));
      }

      test.each(PARTS)('every setting, %s', (part) => expectRead([FULL], { ...LOCKED, part }));

      test(
        `${RANDOM} random profiles with hostile text, seed ${SEED}`,
        () => expectRead(randomProfiles(format)),
        60_000,
      );

      test('a text of a million characters', () => {
        const long = '"\\中😀</string>&\u202e'.repeat(70_000);
        return expectRead([
          { version: 19, containerEngine: { allowedImages: { patterns: [long, long.slice(0, 9)] } } },
        ]);
      });

      test('every two-byte character of XML', () => {
        const all = UNITS.filter(isXmlText).join('');
        return expectRead([{ version: 19, diagnostics: { mutedChecks: { [all]: true } }, images: { namespace: all } }]);
      });

      test('the golden files', () => {
        const paths = goldens(`.${format}`);
        expect(paths.length).toBeGreaterThan(0);
        expect(againstPlistRules(paths)).toBe('');
        for (const read of readPlists(paths)) expect(flatRead(read, settingsIn).get('["version"]')).toBeDefined();
      });
    });

    describe('json, by Python', () => {
      test(`every setting and ${RANDOM} random profiles with any text, seed ${SEED}`, async () => {
        const profiles = [FULL, ...randomProfiles('json')];
        const texts = await Promise.all(profiles.map((profile) => exported('json', profile)));
        const read = readJsons(written(texts, '.json')).map(flatJson);
        expect(read).toEqual(profiles.map((profile) => flatSettings(profile)));
      });

      test('the golden files', () => {
        expect(readJsons([join(GOLDEN, 'full.json')]).map(flatJson)).toEqual([flatSettings(FULL)]);
      });
    });

    describe('a broken file is detected', () => {
      const profile = { version: 19, kubernetes: { port: 6443, enabled: true }, application: { locale: 'a&b' } };
      test.each([
        ['a key without a value', '<integer>6443</integer>', ''],
        ['a number that is none', '<integer>6443</integer>', '<integer>x</integer>'],
        ['another number', '6443', '6444'],
        ['another type', '<true/>', '<integer>1</integer>'],
        ['a tag of no property list', '<true/>', '<yes/>'],
        ['a sign of XML that is not escaped', '&amp;', '&'],
        ['a key in another letter case', '<key>port</key>', '<key>Port</key>'],
      ])('%s', async (_, sign, broken) => {
        const right = await exported('plist', profile);
        const text = right.replace(sign, broken);
        expect(text).not.toBe(right);
        const [good, bad] = readPlists(written([right, text], '.plist')).map((each) =>
          flatRead(each, (value) => value),
        );
        expect(good).toEqual(flatSettings(profile));
        expect(bad).not.toEqual(flatSettings(profile));
      });

      test('xmllint rejects what no property list has', async () => {
        const right = await exported('plist', profile);
        for (const [sign, broken] of [
          ['<integer>6443</integer>', ''],
          ['<true/>', '<yes/>'],
          ['&amp;', '&'],
        ] as const) {
          expect(againstPlistRules(written([right], '.plist'))).toBe('');
          expect(againstPlistRules(written([right, right.replace(sign, broken)], '.plist'))).not.toBe('');
        }
      });

      test('JSON', async () => {
        const right = await exported('json', profile);
        for (const [sign, broken] of [
          ['6443', '6444'],
          ['true', '1'],
          ['6443,', '6443,,'],
          ['"version"', '"version": 18, "version"'],
        ] as const) {
          expect(right).toContain(sign);
          const broke = written([right.replace(sign, broken)], '.json');
          expect(readJsons(broke).map(flatJson)).not.toEqual([flatSettings(profile)]);
        }
      });
    });

    test('our reader reads binary property lists written by Python', async () => {
      const profiles = [FULL, ...randomProfiles('plist', 50)];
      const texts = await Promise.all(profiles.map((profile) => exported('plist', profile)));
      for (const [index, path] of binaryPlists(written(texts, '.plist')).entries()) {
        const [back] = await plistImporter.read(readFileSync(path), 'locked.plist');
        expect(back?.lost).toEqual([]);
        expect(flatSettings(back?.settings ?? {})).toEqual(flatSettings(profiles[index] ?? {}));
      }
    });
  },
);
