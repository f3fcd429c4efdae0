import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mobileconfigImporter } from '../../../profiles/formats/mobileconfig.ts';

/** The signed ones were created from the plain one with `openssl smime` and `openssl cms`, the stream in chunks of indefinite length. */
const GOLDEN = 'test/golden/profiles/import';
const golden = (name: string) => readFileSync(join(GOLDEN, `${name}.mobileconfig`));

describe.each(['plain', 'signed', 'signed-stream'])('%s', (name) => {
  test('has both parts, in both styles, and the rest is reported', async () => {
    const bytes = golden(name);
    expect(mobileconfigImporter.recognizes(bytes)).toBe(true);
    const parts = await mobileconfigImporter.read(bytes, 'a.mobileconfig');
    const [locked, defaults, ...more] = parts;
    expect(more).toEqual([]);
    expect(locked).toMatchObject({
      part: 'locked',
      source: 'a.mobileconfig (PayloadContent.1)',
      settings: { version: 19, kubernetes: { enabled: false } },
      lost: [
        { place: 'PayloadContent.0.PayloadContent.com.example.other', outside: true },
        { place: 'PayloadContent.2 (com.apple.wifi.managed)', outside: true },
      ],
    });
    expect(Object.keys(locked?.settings ?? {})).toEqual(['version', 'kubernetes']);
    expect(defaults).toEqual({
      part: 'defaults',
      source: 'a.mobileconfig (PayloadContent.0.PayloadContent.io.rancherdesktop.profile.defaults.Set-Once.0)',
      settings: { version: 10, images: { namespace: 'team' } },
      lost: [],
    });
    expect(locked?.notes).toEqual(name === 'plain' ? [] : ['a.mobileconfig is signed; its signature was not checked.']);
  });
});

const configuration = (payloads: string) =>
  `<plist version="1.0"><dict><key>PayloadContent</key><array>${payloads}</array><key>PayloadType</key><string>Configuration</string><key>PayloadUUID</key><string>x</string></dict></plist>`;
const payload = (type: string, inner = '') => `<dict><key>PayloadType</key><string>${type}</string>${inner}</dict>`;
const PREFERENCES = 'com.apple.ManagedClient.preferences';
const LOCKED = 'io.rancherdesktop.profile.locked';

test.each<[string, string, RegExp]>([
  [
    'nothing of ours',
    configuration(payload('com.apple.wifi.managed')),
    /no payload for io\.rancherdesktop\.profile\.locked or /,
  ],
  ['no payloads', configuration(''), /no payload for /],
  ['payloads that are no list', configuration('').replaceAll('array', 'dict'), /no list PayloadContent/],
  [
    'encrypted payloads',
    '<plist><dict><key>PayloadType</key><string/><key>PayloadUUID</key><string/><key>EncryptedPayloadContent</key><data/><key>PayloadContent</key><string/></dict></plist>',
    /encrypted/,
  ],
  ['a payload that is a text', configuration('<string/>'), /PayloadContent\.0 is not a dictionary/],
  ['a payload without type', configuration('<dict/>'), /PayloadContent\.0 has no PayloadType/],
  [
    'preferences without content',
    configuration(payload(PREFERENCES)),
    /PayloadContent\.0 has no dictionary PayloadContent/,
  ],
  [
    'a domain that is a text',
    configuration(payload(PREFERENCES, `<key>PayloadContent</key><dict><key>${LOCKED}</key><string/></dict>`)),
    /locked is not a dictionary/,
  ],
  [
    'a way that is a text',
    configuration(
      payload(
        PREFERENCES,
        `<key>PayloadContent</key><dict><key>${LOCKED}</key><dict><key>Forced</key><string/></dict></dict>`,
      ),
    ),
    /locked\.Forced is not a list/,
  ],
  [
    'an entry without settings',
    configuration(
      payload(
        PREFERENCES,
        `<key>PayloadContent</key><dict><key>${LOCKED}</key><dict><key>Forced</key><array><dict/></array></dict></dict>`,
      ),
    ),
    /Forced\.0 has no dictionary mcx_preference_settings/,
  ],
])('%s is refused', async (_, text, reason) => {
  const bytes = Buffer.from(text);
  expect(mobileconfigImporter.recognizes(bytes)).toBe(true);
  await expect(mobileconfigImporter.read(bytes, 'a.mobileconfig')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringMatching(reason),
    // It is a property list, and property list checkers find nothing wrong.
    advice: expect.not.stringContaining('plutil'),
  });
});

test('a truncated signed profile is reported with the command that extracts it', async () => {
  for (const name of ['signed', 'signed-stream']) {
    const whole = golden(name);
    for (const length of [70, 100, 1500]) {
      const bytes = whole.subarray(0, length);
      await expect(mobileconfigImporter.read(bytes, 'a.mobileconfig')).rejects.toMatchObject({
        code: 'ERR_PROFILE_INVALID',
        advice: expect.stringMatching(/^Extract it with: openssl cms -verify -noverify -nosigs -inform DER /),
      });
    }
  }
});

test('an encrypted message is reported', async () => {
  const bytes = Buffer.from('301306092a864886f70d010703a006300402010030', 'hex');
  expect(mobileconfigImporter.recognizes(bytes)).toBe(true);
  await expect(mobileconfigImporter.read(bytes, 'a.mobileconfig')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: 'a.mobileconfig is encrypted, and only its recipient can read it',
    advice: expect.stringMatching(/^Get an unencrypted copy/),
  });
});

test('a property list that merely mentions payloads is not a profile', () => {
  const text =
    '<plist><dict><key>images</key><dict><key>namespace</key><string>PayloadContent</string></dict></dict></plist>';
  expect(mobileconfigImporter.recognizes(Buffer.from(text))).toBe(false);
});
