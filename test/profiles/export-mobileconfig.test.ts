import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { parse } from 'plist';
import { describe, expect, test } from 'vitest';
import { PARTS, type Part } from '../../profiles/formats/format.ts';
import {
  mobileconfigExporter,
  mobileconfigImporter,
  mobileconfigText,
  nameUuid,
} from '../../profiles/formats/mobileconfig.ts';
import { plistText } from '../../profiles/formats/plist.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { interpretPolicy } from '../../profiles/policies/interpretation.ts';
import { writtenFile } from '../../profiles/policies/read.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { checkEach } from '../helpers/check-each.ts';
import { runs } from '../helpers/rounds.ts';

const ALL: JsonObject = JSON.parse(JSON.stringify(defaultSettings({ platform: 'darwin', arch: 'arm64' })));
const MIXED: JsonObject = {
  version: 19,
  application: { extensions: { allowed: { enabled: true, list: ['org/', 'a "b" <c> & \'d\''] } } },
  kubernetes: { enabled: false, port: 6443, version: '' },
  diagnostics: { mutedChecks: { 'ü😀': true, 'a<b': false } },
};

const text = async (settings: JsonObject, part: Part = 'locked') =>
  mobileconfigText(await deploymentTree(settings), part);

type Parsed = JsonObject & { PayloadContent: JsonObject[] };
function parsed(written: string): Parsed {
  return JSON.parse(JSON.stringify(parse(written)));
}

function at(value: JsonValue | undefined, ...names: (string | number)[]): JsonValue | undefined {
  return names.reduce<JsonValue | undefined>((inner, name) => {
    if (Array.isArray(inner)) return inner[Number(name)];
    return isObject(inner) ? inner[name] : undefined;
  }, value);
}

const settingsIn = (document: JsonObject, part: Part) =>
  at(
    document,
    'PayloadContent',
    0,
    'PayloadContent',
    `io.rancherdesktop.profile.${part}`,
    'Forced',
    0,
    'mcx_preference_settings',
  );
const uuidsIn = (written: string) =>
  [...written.matchAll(/PayloadUUID<\/key>\s*<string>(.*)<\/string>/g)].map(([, id]) => id);

test.each(PARTS)('the %s profile matches the golden file', async (part) => {
  await expect(await text(MIXED, part)).toMatchFileSnapshot(`../golden/profiles/${part}.mobileconfig`);
});

describe('the document', () => {
  test.each(PARTS)('has the settings of the %s part and nothing else in their domain', async (part) => {
    for (const settings of [ALL, MIXED, { version: 19 }]) {
      const document = parsed(await text(settings, part));
      expect(settingsIn(document, part)).toEqual(settings);
      const [payload] = document.PayloadContent;
      expect(document.PayloadContent).toHaveLength(1);
      expect(Object.keys(at(payload, 'PayloadContent') ?? {})).toEqual([`io.rancherdesktop.profile.${part}`]);
    }
  });

  test('identifies itself as Apple requires', async () => {
    const document = parsed(await text(MIXED, 'defaults'));
    const { PayloadContent: [payload] = [], ...top } = document;
    expect(top).toEqual({
      PayloadType: 'Configuration',
      PayloadVersion: 1,
      PayloadIdentifier: 'io.rdctl.profile.defaults',
      PayloadUUID: expect.stringMatching(/^[0-9A-F]{8}-[0-9A-F]{4}-5[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}$/),
      PayloadScope: 'System',
      PayloadRemovalDisallowed: false,
      PayloadOrganization: 'rdctl',
      PayloadDisplayName: 'Rancher Desktop: default settings',
      PayloadDescription: expect.stringContaining('Rancher Desktop'),
    });
    expect(payload).toMatchObject({
      PayloadType: 'com.apple.ManagedClient.preferences',
      PayloadVersion: 1,
      PayloadIdentifier: 'io.rdctl.profile.defaults.preferences',
    });
  });

  test('has a file name with the domain', async () => {
    expect(mobileconfigExporter.fileName('locked', 'hklm')).toBe('io.rancherdesktop.profile.locked.mobileconfig');
    expect(mobileconfigExporter.text(await deploymentTree(MIXED), { part: 'defaults', hive: 'hklm' })).toBe(
      await text(MIXED, 'defaults'),
    );
  });
});

describe('a single setting', () => {
  const FULL: JsonObject = JSON.parse(readFileSync('test/golden/profiles/full.settings.json', 'utf8'));
  /** Without these the application refuses the value. */
  const NEEDS: readonly [RegExp, JsonObject][] = [
    [/^experimental\.kubernetes\./, { experimental: { containerEngine: { webAssembly: { enabled: true } } } }],
    [/^virtualMachine\.mount\./, { virtualMachine: { type: 'qemu' } }],
    [/\.9p\./, { virtualMachine: { type: 'qemu', mount: { type: '9p' } } }],
  ];
  const fields = FIELDS.filter(({ lockable, platforms }) => lockable && platforms.includes('darwin'));

  test.each(PARTS)('in the %s part is a valid profile with that value and the version', async (part) => {
    await checkEach(
      fields.map(({ path }) => [path, path] as const),
      async (path) => {
        const settings: JsonObject = structuredClone(NEEDS.find(([needing]) => needing.test(path))?.[1] ?? {});
        const value = leafAt(FULL, path) ?? null;
        setLeaf(settings, path, value);
        const [back, ...others] = await mobileconfigImporter.read(
          Buffer.from(await text(settings, part)),
          'x.mobileconfig',
        );
        expect(others).toEqual([]);
        const warnings: string[] = [];
        const host = { platform: 'darwin', arch: 'arm64', osRelease: '24.0.0' } as const;
        const read = interpretPolicy(writtenFile('x.plist', back?.settings ?? {}), {
          locked: part === 'locked',
          host,
          warnings,
        });
        expect([read.version, leafAt(read.settings, path), warnings]).toEqual([19, value, []]);
      },
    );
  });
});

describe('identity', () => {
  test('a version 5 UUID matches the standard', async () => {
    expect(nameUuid('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com')).toBe(
      '2ED6657D-E927-568B-95E1-2665A8AEA6A2',
    );
  });

  test('settings in another order give the same bytes', async () => {
    const reversed = (value: JsonValue): JsonValue =>
      isObject(value)
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([name, each]): [string, JsonValue] => [name, reversed(each)]),
          )
        : value;
    const other = reversed(ALL);
    if (!isObject(other)) throw new Error('no object');
    expect(Object.keys(other)).not.toEqual(Object.keys(ALL));
    expect(await text(other)).toBe(await text(ALL));
  });

  test('other settings and the other part get other UUIDs; the identifier depends on the part', async () => {
    const one = await text({ version: 19, kubernetes: { enabled: true } });
    const other = await text({ version: 19, kubernetes: { enabled: false } });
    const defaults = await text({ version: 19, kubernetes: { enabled: true } }, 'defaults');
    const uuids = [one, other, defaults].flatMap(uuidsIn);
    expect(uuids).toHaveLength(6);
    expect(new Set(uuids).size).toBe(6);
    expect(parsed(one).PayloadIdentifier).toBe(parsed(other).PayloadIdentifier);
    expect(parsed(one).PayloadIdentifier).not.toBe(parsed(defaults).PayloadIdentifier);
  });

  test('the UUIDs of these settings never change', async () => {
    expect(uuidsIn(await text({ version: 19 }))).toMatchInlineSnapshot(`
      [
        "48C0E56B-8EA2-58C8-B6A2-4A0A026EE531",
        "D47895AF-91C0-5871-A131-BB628562B377",
      ]
    `);
  });
});

describe('what XML cannot represent', () => {
  test('is refused with path and reason, as in a property list', async () => {
    const settings = {
      images: { namespace: 'a\0b' },
      containers: { namespace: '\ufffe' },
      containerEngine: { allowedImages: { patterns: ['ok', '\ud800'] } },
      diagnostics: { mutedChecks: { 'x\u0001': true } },
    };
    const refusal = async (write: () => Promise<string>) => {
      try {
        await write();
      } catch (error) {
        return error;
      }
      throw new Error('it was written');
    };
    const refused = await refusal(() => text(settings));
    expect(refused).toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: expect.stringContaining('configuration profile'),
    });
    const plist = await refusal(async () => plistText(await deploymentTree(settings)));
    expect(refused).toMatchObject({ details: (plist as { details: string[] }).details });
    expect((plist as { details: string[] }).details).toHaveLength(4);
  });
});

describe('reading it back', () => {
  const back = async (written: string) => mobileconfigImporter.read(Buffer.from(written), 'x.mobileconfig');

  test.each(PARTS)('the %s part with every setting', async (part) => {
    const [read, ...others] = await back(await text(ALL, part));
    expect(others).toEqual([]);
    expect(read).toMatchObject({ part, settings: ALL, lost: [] });
  });

  test('any text that XML can hold, also as a name', async () => {
    const xml = fc
      .string({ unit: 'grapheme', maxLength: 20 })
      .filter(
        (each) =>
          ![...each].some((sign) => sign < ' ' && !'\t\n\r'.includes(sign)) && !/[\p{Cs}\ufffe\uffff]/u.test(each),
      );
    await fc.assert(
      fc.asyncProperty(
        xml,
        fc.array(xml, { maxLength: 4 }),
        fc.dictionary(xml, fc.boolean(), { maxKeys: 4 }),
        async (one, list, map) => {
          const settings: JsonObject = {
            version: 19,
            containerEngine: { allowedImages: { patterns: list } },
            images: { namespace: one },
            diagnostics: { mutedChecks: map },
          };
          const [read] = await back(await text(settings));
          expect(read?.settings).toEqual(settings);
        },
      ),
      { numRuns: runs(200) },
    );
  });

  test('a text of a megabyte', async () => {
    const long = 'ä<&"\n'.repeat(200_000);
    const [read] = await back(await text({ version: 19, images: { namespace: long } }));
    expect(read?.settings).toEqual({ version: 19, images: { namespace: long } });
  });
});
