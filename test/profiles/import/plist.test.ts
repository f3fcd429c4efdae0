import { expect, test } from 'vitest';
import { plistImporter } from '../../../profiles/formats/plist.ts';

const xml = (inner: string, head = '<?xml version="1.0" encoding="UTF-8"?>\n') =>
  `${head}<plist version="1.0">${inner}</plist>\n`;

async function settingsIn(bytes: string | Uint8Array, label = 'a.plist') {
  const [part] = await plistImporter.read(Buffer.from(bytes), label);
  return part?.settings;
}

test.each([
  ['io.rancherdesktop.profile.locked.plist', 'locked'],
  ['/a/b/io.rancherdesktop.profile.defaults.plist', 'defaults'],
  ['Locked.plist', 'locked'],
  ['C:\\profiles\\team-defaults.plist', 'defaults'],
  ['unlocked.plist', undefined],
  ['locked', undefined],
  ['team.plist', undefined],
])('the part of %s: %s', async (label, part) => {
  const [read] = await plistImporter.read(Buffer.from(xml('<dict/>')), label);
  expect(read?.part).toBe(part);
});

test('the parser preserves everything: split keys, CDATA, prototype names, numeric keys', async () => {
  const settings = await settingsIn(
    xml(`<dict>
      <key>a<!-- no -->b</key><true/>
      <key><![CDATA[c&<d>]]></key><string>e<![CDATA[&f]]>&amp;g</string>
      <key>__proto__</key><dict><key>polluted</key><true/></dict>
      <key>constructor</key><string/>
      <key>10</key><true/><key>9</key><true/>
      <key></key><string> kept
 </string>
    </dict>`),
  );
  expect(JSON.stringify(settings)).toBe(
    '{"9":true,"10":true,"ab":true,"c&<d>":"e&f&g","__proto__":{"polluted":true},"constructor":"","":" kept\\n "}',
  );
  expect(Object.hasOwn({}, 'polluted')).toBe(false);
});

test.each<[string, string]>([
  ['UTF-8 with a mark', `\ufeff${xml('<dict><key>ä</key><true/></dict>')}`],
  ['no declaration', xml('<dict><key>ä</key><true/></dict>', '')],
])('%s', async (_, text) => {
  expect(plistImporter.recognizes(Buffer.from(text))).toBe(true);
  expect(await settingsIn(text)).toEqual({ ä: true });
});

test('UTF-16 of both kinds', async () => {
  const text = `\ufeff${xml('<dict><key>ä</key><true/></dict>', '<?xml version="1.0" encoding="UTF-16"?>')}`;
  for (const bytes of [Buffer.from(text, 'utf16le'), Buffer.from(text, 'utf16le').swap16()]) {
    expect(plistImporter.recognizes(bytes)).toBe(true);
    expect(await settingsIn(bytes)).toEqual({ ä: true });
  }
});

const wide = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const utf16 = (inner: string) => xml(inner, '<?xml version="1.0" encoding="UTF-16"?>');

test.each<[string, string | Uint8Array, RegExp]>([
  ['half a pair in UTF-16', wide(utf16('<dict><key>a</key><string>b\ud800c</string></dict>')), /it is not UTF-16/],
  ['half a letter in UTF-16', Buffer.concat([wide(utf16('<dict/>')), Buffer.from('x')]), /it is not UTF-16/],
  ['UTF-8 that says UTF-16', utf16('<dict/>'), /it is declared as UTF-16 and not encoded so/],
  ['UTF-16 that says UTF-8', wide(xml('<dict/>')), /it is declared as UTF-8 and not encoded so/],
  [
    'another encoding',
    xml('<dict/>', '<?xml version="1.0" encoding="ISO-8859-1"?>'),
    /it is declared as ISO-8859-1 and not encoded so; UTF-8 and UTF-16 are read/,
  ],
  ['bytes that are no letters', Buffer.concat([Buffer.from('<plist>'), Buffer.from([0xff])]), /not UTF-8/],
  ['a truncated file', xml('<dict><key>a</key><true/></dict>').replace('</dict></plist>', ''), /not closed/],
  ['an empty file that says it is one', '<?xml version="1.0"?>', /it is empty/],
  ['character data between values', xml('<dict><![CDATA[x]]></dict>'), /there is text between values/],
  ['a list', xml('<array/>'), /does not contain a dictionary/],
  ['two values', xml('<dict/><dict/>'), /more than one value/],
  ['two lists', xml('<dict/>') + xml('<dict/>', ''), /after the end/],
  ['a key twice', xml('<dict><key>a</key><true/><key>a</key><false/></dict>'), /"a" appears twice/],
  ['a key twice in two spellings', xml('<dict><key>a</key><true/><key>&#97;</key><true/></dict>'), /appears twice/],
  [
    'an entity of its own',
    '<!DOCTYPE plist [<!ENTITY a "b">]><plist><dict/></plist>',
    /starts nothing that is allowed/,
  ],
  ['a reference to NUL', xml('<dict><key>a</key><string>&#0;</string></dict>'), /a character that XML does not allow/],
  ['half a pair', xml('<dict><key>a</key><string>&#xD800;</string></dict>'), /a character that XML does not allow/],
  [
    'beyond Unicode',
    xml('<dict><key>a</key><string>&#x110000;</string></dict>'),
    /a character that XML does not allow/,
  ],
  ['nothing but the magic', 'bplist00', /ends too early/],
])('%s is refused', async (_, bytes, reason) => {
  const data = Buffer.from(bytes);
  expect(plistImporter.recognizes(data)).toBe(true);
  await expect(settingsIn(data)).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringMatching(reason),
  });
});

test('what JSON does not have stops the application', async () => {
  const inner = ['<date>2026-01-01T00:00:00Z</date>', '<data>YQ==</data>', '<integer>9007199254740993</integer>'];
  const [part] = await plistImporter.read(
    Buffer.from(xml(`<dict>${inner.map((value, index) => `<key>${index}</key>${value}`).join('')}</dict>`)),
    'locked.plist',
  );
  const refused = (what: string) => `the application refuses the whole profile because of it: it is ${what}`;
  expect(part).toMatchObject({
    settings: { 2: 9007199254740992 },
    lost: [
      { place: '0', reason: refused('a date'), refused: true },
      { place: '1', reason: refused('data'), refused: true },
    ],
  });
});

test('a password appears in no message', async () => {
  const bad = xml('<dict><key>password</key><string>hunter2</string><key>x</key><integer>hunter2</integer></dict>');
  const failure = await settingsIn(bad.replace('<integer>hunter2', '<integer>one')).catch((error) => error);
  expect(`${failure.message}${failure.details}`).not.toContain('hunter2');
});
