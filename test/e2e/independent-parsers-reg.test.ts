import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ExportOptions, encodeRegistryFile, PARTS } from '../../profiles/formats/format.ts';
import { regImporter } from '../../profiles/formats/reg.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { flatSettings, registrySettings } from '../helpers/proof/expected.ts';
import { readByHivex } from '../helpers/proof/hivex.ts';
import { exported, FULL, goldens, LOCKED, RANDOM, randomProfiles, SEED, UNITS } from '../helpers/proof/profiles.ts';
import { WITH_WINE, whyNoIndependentPrograms } from '../helpers/proof/program.ts';
import { productKeys, type RegistryReading } from '../helpers/proof/registry.ts';
import { type WineRegistry, wineRegistry } from '../helpers/proof/wine.ts';

describe.skipIf(whyNoIndependentPrograms() !== undefined)('registry files, as hivexregedit and wine read them', () => {
  let wine: WineRegistry;
  if (WITH_WINE) {
    beforeAll(() => {
      wine = wineRegistry();
    });
    afterAll(() => wine.end());
  }

  const ROOTS = { hklm: 'HKEY_LOCAL_MACHINE', hkcu: 'HKEY_CURRENT_USER' } as const;
  const CASES = PARTS.flatMap((part) => (['hklm', 'hkcu'] as const).map((hive) => ({ part, hive })));

  const byHivex = (text: string, { hive }: ExportOptions) => readByHivex(text, `${ROOTS[hive]}\\SOFTWARE`);
  const byWine = (text: string, { hive }: ExportOptions) =>
    wine.read(encodeRegistryFile(text, 'utf-16le'), `${ROOTS[hive]}\\SOFTWARE\\Policies`);
  const READERS = [{ name: 'hivexregedit', read: byHivex }, ...(WITH_WINE ? [{ name: 'wine', read: byWine }] : [])];

  /** All of them in one file, each below its own key in place of that of the product. */
  async function inOneFile(profiles: readonly JsonObject[], options: ExportOptions): Promise<string> {
    const product = `[${ROOTS[options.hive]}\\SOFTWARE\\Policies\\Rancher Desktop`;
    const texts = await Promise.all(profiles.map((profile) => exported('reg', profile, options)));
    const lines = texts.map((text, index) => {
      const [, policies, ...rest] = text.split('\n').slice(0, -1);
      const renamed = rest.map((line) =>
        line.startsWith(product) ? `${product} ${index}${line.slice(product.length)}` : line,
      );
      return [policies, ...renamed].join('\n');
    });
    return `Windows Registry Editor Version 5.00\n${lines.join('\n')}\n`;
  }

  function wanted(profile: JsonObject, { part, hive }: ExportOptions, product = 'Rancher Desktop'): RegistryReading {
    const key = `${ROOTS[hive]}\\SOFTWARE\\Policies\\${product}`;
    return registrySettings(profile, `${key}\\${part}`, new Map([[key, new Map()]]));
  }

  /** In a string value; list entries are bytes in every export. */
  function hasLineEnd(settings: JsonValue): boolean {
    if (isObject(settings)) return Object.values(settings).some(hasLineEnd);
    return typeof settings === 'string' && /[\r\n]/.test(settings);
  }

  describe.each(READERS)('by $name', ({ read }) => {
    test.each(CASES)('every setting, $part, $hive', async (options) => {
      const { keys } = read(await exported('reg', FULL, options), options);
      expect(productKeys(keys)).toEqual(wanted(FULL, options));
    });

    test.each(CASES.slice(1, 3))(
      `${RANDOM} random profiles with hostile text, $part, $hive, seed ${SEED}`,
      async (options) => {
        const profiles = randomProfiles('reg');
        const { keys } = read(await inOneFile(profiles, options), options);
        const all = profiles.flatMap((profile, index) => [...wanted(profile, options, `Rancher Desktop ${index}`)]);
        expect(productKeys(keys)).toEqual(new Map(all));
      },
    );

    test('a long text and a long list', async () => {
      const long = '"\\中😀\u202e[a]=;'.repeat(800);
      const profile = {
        version: 19,
        containerEngine: { allowedImages: { patterns: [long.repeat(10), 'a'] } },
        experimental: { virtualMachine: { proxy: { address: long, username: `${long}\r\n`.repeat(10) } } },
      };
      const { keys } = read(await exported('reg', profile), LOCKED);
      expect(productKeys(keys)).toEqual(wanted(profile, LOCKED));
    });

    test('every UTF-16 unit except NUL, as text and as bytes', async () => {
      const readable = UNITS.filter((unit) => !/[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u.test(unit)).join('');
      const proxy = { address: readable, username: UNITS.join('') };
      const profile = { version: 19, experimental: { virtualMachine: { proxy } } };
      const text = await exported('reg', profile);
      expect(text).toMatch(/"address"="/);
      expect(text).toMatch(/"username"=hex\(1\):/);
      expect(productKeys(read(text, LOCKED).keys)).toEqual(wanted(profile, LOCKED));
    });

    test('the golden files', () => {
      for (const path of goldens('.reg')) {
        const text = readFileSync(path, 'utf8');
        const hive = text.includes('[HKEY_CURRENT_USER') ? 'hkcu' : 'hklm';
        const lines = text.split('\n').filter((line) => line.startsWith('"'));
        const keys = productKeys(read(text, { ...LOCKED, hive }).keys);
        expect([...keys.values()].flatMap((values) => [...values])).toHaveLength(lines.length);
      }
    });

    test('our reader reads what they export', async () => {
      for (const profile of [
        FULL,
        ...randomProfiles('reg', 20)
          .filter((each) => !hasLineEnd(each))
          .slice(0, 5),
      ]) {
        const { file } = read(await exported('reg', profile), LOCKED);
        const [back, ...more] = await regImporter.read(file, 'export.reg');
        expect(more).toEqual([]);
        expect(back?.lost).toEqual([]);
        expect(flatSettings(back?.settings ?? {})).toEqual(flatSettings(profile));
      }
    });
  });

  describe('a line break in a text', () => {
    const profile = { version: 19, application: { locale: 'first\r\nsecond\nthird' } };

    test('is read from bytes, as hivexregedit exports it', async () => {
      const { file } = byHivex(await exported('reg', profile), LOCKED);
      expect(await regImporter.read(file, 'export.reg')).toMatchObject([{ settings: profile, lost: [] }]);
    });

    if (!WITH_WINE) return;
    // As an escape, which Windows only writes for "\" and quotation marks: `C:\new` would be ambiguous.
    test('is refused rather than guessed, as wine exports it', async () => {
      const { file } = byWine(await exported('reg', profile), LOCKED);
      expect(file.toString('utf16le')).toContain('"first\\r\\nsecond\\nthird"');
      await expect(regImporter.read(file, 'export.reg')).rejects.toMatchObject({
        message: expect.stringMatching(/^export\.reg:\d+: a single "\\" in the string must be written as "\\\\"$/),
      });
    });
  });

  describe('a broken file is detected', () => {
    const profile = { version: 19, kubernetes: { port: 6443 }, application: { locale: 'a"b\\c' } };
    test.each([
      ['a number that is none', /dword:192b/, 'dword:zz'],
      ['another number', /dword:192b/, 'dword:192c'],
      ['a quotation mark too many', /a\\"b/, 'a\\\\"b'],
      ['a backslash too few', /\\\\c/, '\\c'],
      ['another type', /"port"=dword:192b/, '"port"="6443"'],
      ['a key without its bracket', /\\kubernetes\]/, '\\kubernetes'],
      ['a value less', /"port".*\n/, ''],
      ['a value in another letter case', /"port"/, '"Port"'],
    ])('%s', async (_, sign, broken) => {
      const right = await exported('reg', profile);
      const text = right.replace(sign, broken);
      expect(text).not.toBe(right);
      for (const { read } of READERS) {
        expect(productKeys(read(right, LOCKED).keys)).toEqual(wanted(profile, LOCKED));
        expect(() => expect(productKeys(read(text, LOCKED).keys)).toEqual(wanted(profile, LOCKED))).toThrow();
      }
    });

    if (!WITH_WINE) return;
    // Without a byte order mark it reads a file in the code page of the computer, and list bytes as its letters.
    test('wine reads neither non-ASCII letters nor lists from UTF-8', async () => {
      const key = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies';
      const plain = { version: 19, application: { locale: 'abc' } };
      const utf8 = async (settings: JsonObject) =>
        productKeys(wine.read(encodeRegistryFile(await exported('reg', settings), 'utf-8'), key).keys);
      expect(await utf8(plain)).toEqual(wanted(plain, LOCKED));
      for (const settings of [
        { version: 19, application: { locale: '中' } },
        { version: 19, containerEngine: { allowedImages: { patterns: ['ab'] } } },
      ]) {
        expect(await utf8(settings)).not.toEqual(wanted(settings, LOCKED));
      }
    });
  });
});
