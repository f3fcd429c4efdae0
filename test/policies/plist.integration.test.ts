import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { xmlPlist } from '../../profiles/formats/plist-xml.ts';
import { policyPlaces, policyPrograms } from '../../profiles/policies/places.ts';
import { readPolicies } from '../../profiles/policies/read.ts';
import { binaryPlistOf, text } from '../helpers/binary-plist.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HOST = { platform: 'darwin', arch: 'arm64', osRelease: '23.1.0' } as const;
/** Created with Python's `plistlib` from `locked.plist.json`, as XML and binary. */
const GOLDEN = 'test/golden/policies';

let directory = '';
beforeEach(() => {
  directory = temporaryDirectory();
});

const place = () => ({
  format: 'plist' as const,
  defaults: join(directory, 'defaults.plist'),
  locked: join(directory, 'locked.plist'),
});

/** No program is run. */
const read = () => readPolicies({ places: [place()], programs: policyPrograms(['/nonexistent']) }, HOST);

const xml = (inner: string) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n<plist version="1.0">\n${inner}\n</plist>\n`;

test("managed preferences win over those of the computer, and those over the user's", () => {
  const domain = 'io.rancherdesktop.profile';
  const files = (path: string) => ({
    format: 'plist',
    defaults: `${path}/${domain}.defaults.plist`,
    locked: `${path}/${domain}.locked.plist`,
  });
  expect(policyPlaces({ HOME: '/elsewhere' }, 'darwin', '/Users/u')).toEqual([
    ...['/Library/Managed Preferences', '/Library/Preferences'].map((directory) => ({
      ...files(directory),
      system: true,
    })),
    { ...files('/Users/u/Library/Preferences'), own: true },
  ]);
  expect(policyPlaces({}, 'darwin', '')).toHaveLength(2);
});

/** The problem with a text; `undefined` when it can be parsed. */
function plistProblem(text: string): string | undefined {
  try {
    xmlPlist(text);
    return undefined;
  } catch (problem) {
    return problem instanceof Error ? problem.message : String(problem);
  }
}

/** The golden profile: version 10, so it is migrated and freezes later settings. */
const MEANING = {
  version: 19,
  containerEngine: { allowedImages: { enabled: true, patterns: ['a/é*', 'b & <c>'] } },
  kubernetes: { version: '1.30.2', port: 6444 },
  experimental: {
    containerEngine: { webAssembly: { enabled: false } },
  },
};

test('XML is read without a program', async () => {
  const text = readFileSync(join(GOLDEN, 'locked.xml.plist'), 'utf8');
  // Windows settings are refused on macOS, so the golden file is read without them here.
  writeFileSync(place().locked, withoutWindows(text));
  const { locked } = await read();
  expect(locked).toMatchObject({ source: place().locked, version: 10, settings: MEANING });
});

test('binary files mean the same', async () => {
  copyFileSync(join(GOLDEN, 'locked.xml.plist'), place().locked);
  const xmlError = await read().catch((thrown: unknown) => thrown);
  copyFileSync(join(GOLDEN, 'locked.binary.plist'), place().locked);
  await expect(read()).rejects.toEqual(xmlError);
  writeFileSync(place().locked, binaryPlistOf([[0xd1, 1, 2], text('version'), [0x10, 19]]));
  expect((await read()).locked?.settings).toEqual({ version: 19 });
});

test('settings that only Windows has are refused, each with its name', async () => {
  copyFileSync(join(GOLDEN, 'locked.xml.plist'), place().locked);
  await expect(read()).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: `Error in deployment profiles: ${place().locked}`,
    details: expect.arrayContaining([
      expect.stringMatching(/^Error for field 'WSL\.integrations': /),
      expect.stringMatching(/^Error for field 'experimental\.virtualMachine\.proxy\.password': /),
    ]),
  });
  const error = await read().catch((thrown: unknown) => thrown);
  expect(JSON.stringify(error)).not.toContain('p&ss');
});

test('a binary file that is damaged or holds no dictionary fails the start', async () => {
  for (const [bytes, reason] of [
    [readFileSync(join(GOLDEN, 'locked.binary.plist')).subarray(0, 100), /^it is damaged at byte \d+$/],
    [binaryPlistOf([[0xa0]]), /^it does not contain a dictionary$/],
    [binaryPlistOf([[0xd1, 1, 2], text('version'), [0x33, 0, 0, 0, 0, 0, 0, 0, 0]]), /^"version" is a date, which no/],
  ] as const) {
    writeFileSync(place().locked, bytes);
    const start = `Error loading plist file ${place().locked}: `;
    const { code, message } = await read().then(
      () => Promise.reject(new Error('it is read')),
      (error) => error,
    );
    expect([code, message.slice(0, start.length)]).toEqual(['ERR_PROFILE_INVALID', start]);
    expect(message.slice(start.length)).toMatch(reason);
  }
});

describe('unreliable XML', () => {
  const NO_MARKUP = 'a "<" starts nothing that is allowed in a property list, or something that does not end';
  const dict = (inner: string) => xml(`<dict><key>version</key><integer>19</integer>${inner}</dict>`);

  test.each([
    [
      'letters in a number',
      dict('<key>kubernetes</key><dict><key>port</key>\n<integer>64k</integer></dict>'),
      '<integer> does not contain an integer (line 5)',
    ],
    ['a number without digits', dict('<key>a</key><integer/>'), '<integer> does not contain an integer (line 4)'],
    ['a real that is none', dict('<key>a</key><real>x</real>'), '<real> does not contain a number (line 4)'],
    ['a key without a value', dict('<key>kubernetes</key>'), 'the key "kubernetes" has no value (line 4)'],
    ['two keys in a row', dict('<key>a</key><key>b</key><true/>'), 'the key "a" has no value (line 4)'],
    ['a value without a key', dict('<true/>'), '<true> has no key (line 4)'],
    [
      'a key twice',
      dict('<key>version</key><integer>18</integer>'),
      'the key "version" appears twice in one dictionary (line 4)',
    ],
    [
      'an unknown tag',
      dict('<key>a</key><boolean>true</boolean>'),
      '<boolean> is not a tag of a property list (line 4)',
    ],
    [
      'a tag inside a text',
      dict('<key>a</key><string>x<true/></string>'),
      '<string> contains a tag, or is not closed (line 4)',
    ],
    [
      'an unknown tag inside a text',
      dict('<key>a</key><string>x<hush>y</string>'),
      '<string> contains a tag, or is not closed (line 4)',
    ],
    ['text between values', dict('\noops'), 'there is text between values (line 5)'],
    ['a blank that XML has not', dict('\u00a0'), 'there is text between values (line 4)'],
    ['a blank that XML has not, behind the end', `${dict('')}\u2028`, 'there is text between values (line 6)'],
    ['a tag that is not closed', '<plist>\n<dict>\n<key>a</key>', '<dict> is not closed (line 2)'],
    ['tags that cross', '<plist><dict></array></plist>', '</array> has no opening tag (line 1)'],
    ['an unknown tag that has no opening tag', '<plist><dict></hush></plist>', '</hush> has no opening tag (line 1)'],
    ['an entity of its own', '<!DOCTYPE plist [<!ENTITY a "b">]><plist><dict/></plist>', `${NO_MARKUP} (line 1)`],
    ['an unknown entity', dict('<key>a</key><string>x\n\n&b;</string>'), 'a "&" starts no known entity (line 6)'],
    ['a bare ampersand', dict('<key>a</key><string>a & b</string>'), 'a "&" starts no known entity (line 4)'],
    ['a bare bracket', dict('<key>a</key><string>a<1</string>'), `${NO_MARKUP} (line 4)`],
    [
      'too many levels',
      xml(`${'<array>'.repeat(150)}${'</array>'.repeat(150)}`),
      'it nests deeper than 100 levels (line 4)',
    ],
    ['a comment without an end', '<plist><!-- <dict>', `${NO_MARKUP} (line 1)`],
    [
      'a comment that ends like a tag',
      `<plist><!-- old ><dict><key>version</key><integer>19</integer></dict></plist>`,
      `${NO_MARKUP} (line 1)`,
    ],
    ['an instruction that ends like a tag', '<?xml version="1.0"><plist><dict/></plist>', `${NO_MARKUP} (line 1)`],
    ['character data without an end', '<plist><string><![CDATA[x]></string></plist>', `${NO_MARKUP} (line 1)`],
    ['a place for entities of its own', '<!DOCTYPE plist [ ]><plist><dict/></plist>', `${NO_MARKUP} (line 1)`],
    [
      'a sign that XML cannot have',
      dict('<key>a</key><string>\u0001</string>'),
      'it has a character that XML does not allow (line 4)',
    ],
    ['HTML', '<html><body/></html>', 'it does not begin with <plist> (line 1)'],
  ])('%s', async (_name, text, reason) => {
    writeFileSync(place().locked, text);
    await expect(read()).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: `Error loading plist file ${place().locked}: ${reason}`,
    });
  });

  test('a date or data, which no setting can be', async () => {
    for (const [value, what] of [
      ['<date>2020-01-01T00:00:00Z</date>', 'a date'],
      ['<data>AAAA</data>', 'data'],
      ['<real>1e400</real>', 'not a finite number'],
    ]) {
      writeFileSync(place().locked, dict(`<key>kubernetes</key><dict><key>port</key>${value}</dict>`));
      await expect(read()).rejects.toMatchObject({
        message: `Error loading plist file ${place().locked}: "kubernetes.port" is ${what}, which no setting can be`,
      });
    }
  });

  // Quadratic work would take hours here.
  test.each([
    ['comments that have no end', '<plist>', '<!-- >'],
    ['comments', '<plist>', '<!-- -->'],
    ['instructions that have no end', '<plist>', '<?x >'],
    ['character data that has no end', '<plist><string>', '<![CDATA[ ]>'],
    ['types of a document that have no end', '', '<!DOCTYPE '],
    ['types of a document', '', '<!DOCTYPE>'],
    ['tags that have no end', '<plist>', '<a '],
    ['a tag that has no end', '<plist>', '<array\n'],
    ['the name of a tag that has no end', '<plist><', 'a'],
    ['blanks in a tag', '<plist', '  '],
    ['strokes in a tag', '<plist ', '/'],
    ['ampersands', '<plist><string>', '&'],
    ['references that have no end', '<plist><string>', '&#1'],
    ['a digit after another', '<plist><integer>', '1'],
    ['keys that have no value', '<plist><dict>', '<key>a</key>'],
  ])('%s, many megabytes of it', (_name, start, piece) => {
    expect(plistProblem(start + piece.repeat(8_000_000 / piece.length))).toEqual(expect.any(String));
  });

  test('tags in comments and CDATA do not count', () => {
    const inner = '<key>a</key><!-- <dict> --><string>x<![CDATA[<true/>&]]></string>';
    expect(plistProblem(xml(`<dict>${inner}</dict>`))).toBeUndefined();
  });
});

test('wrong types are reported in the words of the compatible application', async () => {
  const list = '<array><string>strawberries</string><string>limes</string></array>';
  writeFileSync(
    place().locked,
    xml(
      `<dict><key>version</key><integer>19</integer><key>kubernetes</key><dict><key>version</key>${list}<key>enabled</key><integer>1</integer></dict></dict>`,
    ),
  );
  await expect(read()).rejects.toMatchObject({
    message: `Error in deployment file ${place().locked}:`,
    details: [
      `Error for field 'kubernetes.version': expecting value of type string, got an array ["strawberries","limes"]`,
      `Error for field 'kubernetes.enabled': expecting value of type boolean, got a number 1`,
    ],
  });
});

/** The text of a property list without `WSL` and the proxy. */
function withoutWindows(text: string): string {
  return text
    .replace(/<key>WSL<\/key>\s*<dict>\s*<key>integrations<\/key>\s*<dict>[\s\S]*?<\/dict>\s*<\/dict>/, '')
    .replace(/<key>experimental<\/key>\s*<dict>[\s\S]*?<\/dict>\s*<\/dict>\s*<\/dict>/, '');
}
