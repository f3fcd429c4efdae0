import { describe, expect, test } from 'vitest';
import { registryPolImporter } from '../../profiles/import/registry-pol.ts';
import { RdError } from '../../src/errors.ts';
import { type PolEntry, polFile, polList, polNumber, polText } from '../helpers/pol-writer.ts';

const PRODUCT = 'SOFTWARE\\Policies\\Rancher Desktop';
const LOCKED = `${PRODUCT}\\Locked`;
const VERSION = polNumber(LOCKED, 'version', 19);

const read = (...entries: PolEntry[]) => registryPolImporter.read(polFile(entries), 'Registry.pol');

async function refusal(bytes: Uint8Array): Promise<RdError> {
  const error = await registryPolImporter.read(bytes, 'Registry.pol').catch((cause: unknown) => cause);
  if (!(error instanceof RdError)) throw new Error('it was read', { cause: error });
  expect(error.code).toBe('ERR_PROFILE_INVALID');
  return error;
}

test('what an administrator sets by templates', async () => {
  const parts = await read(
    VERSION,
    polText(`${LOCKED}\\containerEngine`, 'name', 'moby'),
    polList(`${LOCKED}\\containerEngine\\allowedImages`, 'patterns', ['a;b]', '[é😀']),
    polNumber(`${PRODUCT}\\Defaults`, 'version', 19),
    polNumber(`${PRODUCT}\\Defaults\\WSL\\integrations`, 'a;[b]', 1),
    // Makes the key alone.
    { key: `${PRODUCT}\\Defaults\\images`, name: '', type: 0, data: Buffer.alloc(0) },
    polNumber('SOFTWARE\\Policies\\Other', 'x', 1),
  );
  expect(parts).toEqual([
    {
      part: 'locked',
      source: `Registry.pol: ${LOCKED}`,
      settings: {
        version: 19,
        containerEngine: { name: 'moby', allowedImages: { patterns: ['a;b]', '[é😀'] } },
      },
      lost: [],
      notes: ['Registry.pol: 1 value in keys of others is no part of a profile and was not looked at.'],
    },
    {
      part: 'defaults',
      source: `Registry.pol: ${PRODUCT}\\Defaults`,
      settings: { version: 19, WSL: { integrations: { 'a;[b]': true } } },
      lost: [],
    },
  ]);
});

test.each([
  ['Registry.pol', ''],
  ['GroupPolicy/Machine/Registry.pol', 'HKEY_LOCAL_MACHINE\\'],
  ['C:\\Windows\\System32\\GroupPolicy\\User\\Registry.pol', 'HKEY_CURRENT_USER\\'],
  ['machine.pol', ''],
])('the directory of %s tells the hive', async (label, hive) => {
  const [part] = await registryPolImporter.read(polFile([VERSION]), label);
  expect(part?.source).toBe(`${label}: ${hive}${LOCKED}`);
});

describe('control codes', () => {
  const key = `${LOCKED}\\images`;
  const space = Buffer.from(' \0', 'utf16le');
  const code = (name: string, data = space): PolEntry => ({ key, name, type: 1, data });
  const deletion = 'it is a deletion, and a profile only sets';
  const namespace = polText(key, 'namespace', 'team');
  const showAll = polNumber(key, 'showAll', 1);
  const both = { showAll: true, namespace: 'team' };

  test.each<[string, PolEntry[], object | undefined, [string, string][]]>([
    [
      'a value',
      [namespace, showAll, code('**del.ShowAll')],
      { namespace: 'team' },
      [
        [': showAll', 'the entry at byte 0 deletes it'],
        [': ShowAll', deletion],
      ],
    ],
    ['one that is not there', [namespace, code('**Del.other')], { namespace: 'team' }, [[': other', deletion]]],
    [
      'all values',
      [namespace, code('**delvals.'), showAll],
      { showAll: true },
      [
        [': namespace', 'the entry at byte 0 deletes all values of the key'],
        ['', 'it deletes all values of the key'],
      ],
    ],
    [
      'all values, without the dot',
      [code('**DelVals'), namespace],
      { namespace: 'team' },
      [['', 'it deletes all values of the key']],
    ],
    [
      'several values, in the data',
      [namespace, showAll, code('**DeleteValues', Buffer.from('showAll;x\0', 'utf16le'))],
      { namespace: 'team' },
      [
        [': showAll', 'the entry at byte 0 deletes it'],
        [': showAll', deletion],
        [': x', deletion],
      ],
    ],
    [
      'several values, in the name',
      [namespace, code('**DeleteValues a; b')],
      { namespace: 'team' },
      [
        [': a', deletion],
        [': b', deletion],
      ],
    ],
    [
      'keys',
      [{ ...code('**DeleteKeys', Buffer.from('images;Nothing\\x\0', 'utf16le')), key: LOCKED }, namespace],
      { namespace: 'team' },
      [
        ['', deletion],
        ['Nothing\\x', deletion],
      ],
    ],
    [
      'a value that is only set where none is',
      [code('**soft.namespace', Buffer.from('team\0', 'utf16le'))],
      { namespace: 'team' },
      [[': namespace', 'that it is only set where no value is gets lost']],
    ],
    [
      'the same where one is',
      [namespace, code('**soft.Namespace')],
      { namespace: 'team' },
      [[': Namespace', 'it is only set where no value is, and there is one']],
    ],
    ['rights', [namespace, showAll, code('**SecureKey')], both, [['', 'it sets who may write to the key']]],
    ['a comment', [namespace, showAll, code('**Comment:GPO Name: x')], both, []],
    [
      'another one',
      [namespace, showAll, code('**new.namespace')],
      both,
      [[': **new.namespace', 'it is a control code that is not known']],
    ],
  ])('%s', async (name, entries, images, lost) => {
    const [part] = await read(VERSION, ...entries);
    expect(part?.settings).toEqual({ version: 19, images });
    const place = (rest: string) => (name === 'keys' && rest !== '' ? `${LOCKED}\\${rest}` : `${key}${rest}`);
    const withoutBytes = part?.lost.map((loss) => ({ ...loss, reason: loss.reason.replaceAll(/byte \d+/g, 'byte 0') }));
    expect(withoutBytes).toEqual(lost.map(([rest, reason]) => ({ place: place(rest), reason: `${reason} (byte 0)` })));
  });

  test('places are those of the entries', async () => {
    const [part] = await read(VERSION, code('**del.x'));
    expect(part?.lost).toEqual([{ place: `${key}: x`, reason: `${deletion} (byte ${polFile([VERSION]).length})` }]);
  });
});

describe('a file that is not of the form', () => {
  const whole = polFile([VERSION, polText(`${LOCKED}\\images`, 'namespace', 'team')]);

  test('every cut is refused with its place', async () => {
    const ends = new Set([8, polFile([VERSION]).length]);
    for (let length = 4; length < whole.length; length++) {
      if (ends.has(length)) continue;
      const error = await refusal(whole.subarray(0, length));
      expect(error.message, String(length)).toMatch(/^Registry\.pol: byte \d+: /);
      expect(error.advice).toContain('again');
    }
  });

  test.each([
    ['another version', polFile([VERSION], 2), 'byte 4: the version is 2 and not 1'],
    ['no bracket', Buffer.concat([polFile([]), Buffer.from('x', 'utf16le')]), 'byte 8: "[" is missing'],
    ['an empty key', polFile([polNumber('', 'x', 1)]), 'byte 8: the path has an empty name in it'],
    [
      'a long name',
      polFile([polNumber('x', 'x'.repeat(20_000), 1)]),
      'byte 8: its name has more than 16383 characters',
    ],
    [
      'half a character',
      polFile([{ key: LOCKED, name: 'x', type: 1, data: Buffer.from('xyz') }]),
      'byte 8: a text ends inside of a character',
    ],
  ])('%s', async (_name, bytes, message) => {
    expect((await refusal(bytes)).message).toBe(`Registry.pol: ${message}`);
  });

  test('no profile in it', async () => {
    expect((await refusal(polFile([]))).message).toBe('Registry.pol holds no deployment profile');
  });

  test('a size that is larger than the file', async () => {
    const bytes = polFile([VERSION]);
    bytes.writeUInt32LE(0xffff_fff0, bytes.length - 12);
    expect((await refusal(bytes)).message).toContain('4294967280 bytes are announced and not there');
  });

  test('what is no policy file is not taken for one', () => {
    expect(registryPolImporter.recognises(whole)).toBe(true);
    for (const other of ['', 'PRe', 'preg', 'REGEDIT4']) {
      expect(registryPolImporter.recognises(Buffer.from(other)), other).toBe(false);
    }
  });
});
