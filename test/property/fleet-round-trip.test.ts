import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeRegistryFile, type Hive, type ImportedPart, PARTS, type Part } from '../../profiles/formats/format.ts';
import { EXPORTERS, IMPORTERS } from '../../profiles/formats/index.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { FLEET_VERSIONS, fullProfileArbitrary, profileArbitrary } from '../helpers/fleet-arbitrary.ts';
import { cannotHold, heldTexts, texts } from '../helpers/format-limits.ts';
import { anyText } from '../helpers/hostile-text.ts';
import { flatSettings } from '../helpers/proof/expected.ts';
import { randomProfiles } from '../helpers/proof/profiles.ts';
import { rounds, runs } from '../helpers/rounds.ts';

interface Options {
  part: Part;
  hive: Hive;
}

interface Form {
  name: string;
  format: string;
  bytes: (text: string) => Buffer;
}

const FORMS: readonly Form[] = [
  { name: 'plist', format: 'plist', bytes: (text) => Buffer.from(text) },
  { name: 'mobileconfig', format: 'mobileconfig', bytes: (text) => Buffer.from(text) },
  { name: 'json', format: 'json', bytes: (text) => Buffer.from(text) },
  { name: 'reg in UTF-8', format: 'reg', bytes: (text) => encodeRegistryFile(text, 'utf-8') },
  { name: 'reg in UTF-16', format: 'reg', bytes: (text) => encodeRegistryFile(text, 'utf-16le') },
];

const OPTIONS = fc.record<Options>({ part: fc.constantFrom(...PARTS), hive: fc.constantFrom('hklm', 'hkcu') });
const LOCKED: Options = { part: 'locked', hive: 'hklm' };
const WILD = { value: anyText(), key: anyText() };

test('every format is tested', () => {
  expect(new Set(FORMS.map(({ format }) => format))).toEqual(new Set(Object.keys(EXPORTERS)));
});

test.each(Object.keys(EXPORTERS))('random profiles for %s have nearly as many texts as unrestricted ones', (format) => {
  const count = (each: string) => randomProfiles(each).flatMap((profile) => texts(profile)).length;
  expect(count(format)).toBeGreaterThan(0.7 * count('json'));
});

describe.each(FORMS)('$name', (form) => {
  const { format } = form;

  test.each(FLEET_VERSIONS)(
    'restores settings of version %i, or refuses them with path and reason',
    async (version) => {
      await fc.assert(
        fc.asyncProperty(profileArbitrary(version, WILD), OPTIONS, async (profile, options) => {
          const refused = new Set(cannotHold(format, profile));
          const text = await exported(format, profile, options);
          if (Array.isArray(text)) expect(pathsOf(text, refused)).toEqual(refused);
          else {
            expect(refused).toEqual(new Set());
            await expectBack(profile, form, text, options.part);
          }
        }),
        { numRuns: runs(25) },
      );
    },
  );

  test('restores every setting at once', async () => {
    const profiles = fc.oneof(...FLEET_VERSIONS.map((version) => fullProfileArbitrary(version, heldTexts(format))));
    await fc.assert(
      fc.asyncProperty(profiles, OPTIONS, async (profile, options) => {
        fc.pre(cannotHold(format, profile).length === 0);
        const text = await exported(format, profile, options);
        await expectBack(profile, form, String(text), options.part);
      }),
      { numRuns: runs(60), maxSkipsPerRun: 1 },
    );
  });

  test('restores a very long text', async () => {
    const line = longText('"\\中😀</string>&\u202e[a]=;');
    const lines = longText('a\r\n\tb');
    const profile = {
      version: 19,
      containerEngine: { allowedImages: { patterns: [line] } },
      experimental: { virtualMachine: { proxy: { address: line, username: lines } } },
    };
    await expectBack(profile, form, String(await exported(format, profile, LOCKED)), 'locked');
  });
});

describe('what a format rejects', () => {
  const username = (text: string) => ({ experimental: { virtualMachine: { proxy: { username: text } } } });
  const patterns = (...list: string[]) => ({ containerEngine: { allowedImages: { patterns: list } } });
  const integrations = (...names: string[]) => ({
    WSL: { integrations: Object.fromEntries(names.map((name) => [name, true])) },
  });
  const XML = ['plist', 'mobileconfig'];
  const ALL = [...XML, 'reg'];
  const cases: [string, JsonObject, string[], string?][] = [
    ['NUL in a text', username('a\0b'), ALL, 'experimental.virtualMachine.proxy.username'],
    ['NUL in a list', patterns('a', 'b\0'), ALL, 'containerEngine.allowedImages.patterns[1]'],
    ['NUL in a name', integrations('a\0b'), ALL, 'WSL.integrations["a\\u0000b"]'],
    ['a control character in a text', username('a\u001bb'), XML, 'experimental.virtualMachine.proxy.username'],
    ['a control character in a name', integrations('a\u001bb'), ALL, 'WSL.integrations["a\\u001bb"]'],
    ['U+FFFE in a text', username('\ufffe'), XML, 'experimental.virtualMachine.proxy.username'],
    ['U+FFFF in a name', integrations('\uffff'), XML, 'WSL.integrations["\\uffff"]'],
    ['an unpaired surrogate in a text', username('a\ud83d'), XML, 'experimental.virtualMachine.proxy.username'],
    ['the other half in a list', patterns('\ude00a'), XML, 'containerEngine.allowedImages.patterns[0]'],
    ['an unpaired surrogate in a name', integrations('\ud83d'), ALL, 'WSL.integrations["\\ud83d"]'],
    ['an empty element', patterns('a', '', 'b'), ['reg'], 'containerEngine.allowedImages.patterns[1]'],
    ['nothing but an empty element', patterns(''), ['reg'], 'containerEngine.allowedImages.patterns[0]'],
    ['names that differ in letter case', integrations('Ubuntu', 'ubuntu'), ['reg'], 'WSL.integrations.ubuntu'],
    ['such names outside of ASCII', integrations('É', 'é'), ['reg'], 'WSL.integrations.é'],
    ['a name of 256 units', integrations('x'.repeat(256)), ['reg'], `WSL.integrations["${'x'.repeat(80)}…"]`],
    ['an empty name', integrations(''), ['reg'], 'WSL.integrations[""]'],
    ['tab, line feed and carriage return', username('\t\n\r\r\n'), []],
    ['tab, line feed and carriage return in a list', patterns('\t\n\r\r\n'), []],
    ['DEL and the control characters above it', username('\u007f\u0085\u009f'), []],
    ['a name of 255 units', integrations('x'.repeat(255)), []],
    ['an empty text', username(''), []],
    ['an empty list', patterns(), []],
    ['an empty map', integrations(), []],
    ['what looks like syntax', username('"=dword:1\\\\"\\'), []],
    [
      'names that look like syntax',
      integrations('(Default)', '[a]=;"b\\c', '@', '-', ' a ', '\\', '"', ']]>', '</key>'),
      [],
    ],
    ['names that every object has', JSON.parse('{"WSL":{"integrations":{"__proto__":true,"constructor":false}}}'), []],
    ['names that normalise to one', integrations('\u00e9', 'e\u0301'), []],
  ];

  test.each(cases)('%s', async (_, settings, refusing, path) => {
    const profile = { version: 19, ...settings };
    const refused: string[] = [];
    for (const form of FORMS) {
      const text = await exported(form.format, profile, LOCKED);
      if (typeof text === 'string') await expectBack(profile, form, text, 'locked');
      else {
        expect(text).toEqual([expect.stringMatching(/: \S/)]);
        expect(text[0]?.slice(0, path?.length)).toBe(path);
        refused.push(form.format);
      }
    }
    expect(new Set(refused)).toEqual(new Set(refusing));
  });

  test.each([-1, 2 ** 32, 2 ** 53 - 1])('the number %d in the registry only', async (port) => {
    const profile = { version: 19, kubernetes: { port } };
    for (const form of FORMS) {
      const text = await exported(form.format, profile, LOCKED);
      if (form.format === 'reg') expect(text).toEqual([expect.stringMatching(/^kubernetes\.port: \S/)]);
      else await expectBack(profile, form, String(text), 'locked');
    }
  });

  test('everything at once, without values', async () => {
    const profile = { version: 19, ...username('secret-1\0'), ...integrations('a\0'), ...patterns('secret-2\0') };
    const lines = await exported('plist', profile, LOCKED);
    expect(lines).toHaveLength(3);
    expect(String(lines)).not.toContain('secret');
  });
});

/** The text, or what the format rejects: `path: reason` each. */
async function exported(format: string, profile: JsonObject, options: Options): Promise<string | string[]> {
  const exporter = await EXPORTERS[format]?.();
  if (!exporter) throw new Error(`no exporter ${format}`);
  const tree = await deploymentTree(profile);
  try {
    return exporter.text(tree, options);
  } catch (error) {
    if (!(error instanceof RdError) || error.code !== 'ERR_PROFILE_INVALID') throw error;
    return [...(error.details ?? [])];
  }
}

/** The leading paths of refusals; those without a path stay unchanged. */
function pathsOf(refusals: readonly string[], paths: ReadonlySet<string>): Set<string> {
  const longestFirst = [...paths].sort((a, b) => b.length - a.length);
  return new Set(refusals.map((line) => longestFirst.find((path) => line.startsWith(`${path}: `)) ?? line));
}

/** The file has only this part, with the settings of the profile and nothing else. */
async function expectBack(profile: JsonObject, { bytes }: Form, text: string, part: Part): Promise<void> {
  const [back, ...more] = await imported(bytes(text));
  expect(more).toEqual([]);
  expect(back?.part ?? part).toBe(part);
  expect(back?.lost).toEqual([]);
  expect(flatSettings(back?.settings ?? {})).toEqual(flatSettings(profile));
}

async function imported(bytes: Uint8Array): Promise<ImportedPart[]> {
  for (const load of IMPORTERS) {
    const importer = await load();
    if (importer.recognizes(bytes)) return importer.read(bytes, 'file');
  }
  throw new Error('no importer recognises the file');
}

function longText(piece: string): string {
  return piece.repeat(Math.ceil(rounds(200_000, 1_000_000) / piece.length));
}
