import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { policies } from '../../profiles/formats/admx-policies.ts';
import { type ImportedPart, PARTS } from '../../profiles/formats/format.ts';
import { registryPolImporter } from '../../profiles/formats/pol.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { ADMX, namedPolicies, policyValues, stateFor } from '../helpers/admx-profile.ts';
import { checkEach } from '../helpers/check-each.ts';
import { rdctl } from '../helpers/cli.ts';
import type { PolicyState } from '../helpers/group-policy.ts';
import {
  groupPolicyEntries,
  type PolEntry,
  polCode,
  polFile,
  polList,
  polNumber,
  polText,
} from '../helpers/pol-writer.ts';
import { runs } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

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

test('what an administrator configures through templates', async () => {
  const parts = await read(
    VERSION,
    polText(`${LOCKED}\\containerEngine`, 'name', 'moby'),
    polList(`${LOCKED}\\containerEngine\\allowedImages`, 'patterns', ['a;b]', '[é😀']),
    polNumber(`${PRODUCT}\\Defaults`, 'version', 19),
    polNumber(`${PRODUCT}\\Defaults\\WSL\\integrations`, 'a;[b]', 1),
    // Creates just the key.
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
      notes: ['Registry.pol: 1 value in keys of other programs is not part of a profile and was ignored.'],
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
])('the directory of %s determines the hive', async (label, hive) => {
  const [part] = await registryPolImporter.read(polFile([VERSION]), label);
  expect(part?.source).toBe(`${label}: ${hive}${LOCKED}`);
});

describe('control codes', () => {
  const key = `${LOCKED}\\images`;
  const space = Buffer.from(' \0', 'utf16le');
  const code = (name: string, data = space): PolEntry => ({ key, name, type: 1, data });
  const namespace = polText(key, 'namespace', 'team');
  const showAll = polNumber(key, 'showAll', 1);
  const both = { showAll: true, namespace: 'team' };

  test.each<[string, PolEntry[], object]>([
    ['a deletion of a value that is not there', [namespace, code('**Del.other')], { namespace: 'team' }],
    ['of one that is set afterwards', [code('**del.namespace'), namespace], { namespace: 'team' }],
    ['of all values where none is', [code('**delvals.'), namespace, showAll], both],
    ['the same without the dot', [code('**DelVals'), namespace], { namespace: 'team' }],
    ['a comment', [namespace, showAll, code('**Comment:GPO Name: x')], both],
  ])('%s changes nothing', async (_name, entries, images) => {
    expect(await read(VERSION, ...entries)).toMatchObject([{ settings: { version: 19, images }, lost: [] }]);
  });

  const deleted = 'it deletes what an earlier entry sets, and profiles can only set values';
  const keys = 'it deletes keys, and profiles can only set values';
  const unknown = (name: string) => `it has the control code "${name}", and profiles can only set values`;
  test.each<[string, PolEntry, string]>([
    ['a value', code('**del.ShowAll'), deleted],
    ['all values', code('**delvals.'), deleted],
    ['all values, without the dot', code('**DelVals'), deleted],
    ['several values', code('**DeleteValues a; SHOWALL'), unknown('**DeleteValues')],
    ['keys', { ...code('**DeleteKeys', Buffer.from('images\0', 'utf16le')), key: LOCKED }, keys],
    ['a value that is only set where none is', code('**soft.namespace'), unknown('**soft')],
    ['permissions', code('**SecureKey'), unknown('**SecureKey')],
    ['a code that nobody knows', code('**new.namespace'), unknown('**new')],
    ['a value that changes', polNumber(key, 'SHOWALL', 0), 'the file sets this value twice, differently'],
  ])('refused: %s, with the position of the entry', async (_name, entry, reason) => {
    const before = [VERSION, namespace, showAll];
    const error = await refusal(polFile([...before, entry]));
    expect(error.message).toBe(`Registry.pol: byte ${polFile(before).length}: ${reason}`);
    expect(error.advice).toContain('policy');
  });
});

describe('entries of other products', () => {
  const OTHER = 'SOFTWARE\\Policies\\Other';
  const profile = [VERSION, polText(`${LOCKED}\\images`, 'namespace', 'team')];
  const settings = { version: 19, images: { namespace: 'team' } };
  const data = (text: string) => Buffer.from(`${text}\0`, 'utf16le');
  const deleteKeys = (key: string, names: string): PolEntry => ({
    key,
    name: '**DeleteKeys',
    type: 1,
    data: data(names),
  });

  test.each<[string, PolEntry]>([
    ['half a character', { key: OTHER, name: 'x', type: 1, data: Buffer.from('xyz') }],
    ['half a character in a list', { key: OTHER, name: 'x', type: 7, data: Buffer.from('x') }],
    ['half a character in a control code', { key: OTHER, name: '**soft.x', type: 1, data: Buffer.from('x') }],
    ['an empty name in the path', polNumber('SOFTWARE\\Policies\\\\Other', 'x', 1)],
    ['an empty key', polNumber('', 'x', 1)],
    ['a key of nothing but a separator', polNumber('\\', 'x', 1)],
    ['a long name of a key', polNumber(`${OTHER}\\${'x'.repeat(256)}`, 'x', 1)],
    ['a long name next to the product', polNumber(`SOFTWARE\\Policies\\Rancher Desktop${'x'.repeat(300)}`, 'x', 1)],
    ['a deep key', polNumber(`${OTHER}${'\\x'.repeat(300_000)}`, 'x', 1)],
    ['a long name of a value', polNumber(OTHER, 'x'.repeat(20_000), 1)],
    ['a key above that of the product', polNumber('SOFTWARE\\Policies', 'x', 1)],
    ['a type that nobody knows', { key: OTHER, name: 'x', type: 0xffff_ffff, data: Buffer.from('x') }],
    ['a control code that nobody knows', polCode(OTHER, '**x')],
  ])('%s hides no profile, and is counted', async (_name, entry) => {
    for (const entries of [
      [entry, ...profile],
      [...profile, entry],
    ]) {
      const [part, ...others] = await read(...entries);
      expect(others).toEqual([]);
      expect(part?.settings).toEqual(settings);
      expect(accounts(part)).toEqual([
        'Registry.pol: 1 value in keys of other programs is not part of a profile and was ignored.',
      ]);
    }
  });

  test.each<[string, PolEntry]>([
    ['a value', polCode(OTHER, '**del.x')],
    ['all values above the key of the product', polCode('SOFTWARE\\Policies', '**delvals.')],
    ['values', polCode('SOFTWARE\\Policies', '**DeleteValues Rancher Desktop')],
    ['keys', deleteKeys(OTHER, 'x;Rancher Desktop')],
  ])('a deletion of %s removes nothing from a profile', async (_name, entry) => {
    const [part] = await read(...profile, entry);
    expect(part?.settings).toEqual(settings);
    expect(accounts(part)).toEqual([]);
  });

  test.each([
    ['', 'Software'],
    ['SOFTWARE\\\\', 'Policies'],
    ['SOFTWARE\\Policies', 'x;Rancher Desktop'],
    ['SOFTWARE', 'Policies\\Rancher Desktop\\Locked\\images'],
  ])('a deletion of keys in "%s", which a profile is below, is refused: %s', async (key, names) => {
    const error = await refusal(polFile([...profile, deleteKeys(key, names)]));
    expect(error.message).toMatch(/^Registry\.pol: byte \d+: it deletes keys, and profiles can only set values$/);
  });

  /** What is reported about everything except the settings. */
  function accounts(part: ImportedPart | undefined): string[] {
    return [...(part?.lost ?? []).map(({ reason }) => reason), ...(part?.notes ?? [])];
  }

  const text = fc.string({ unit: 'binary', maxLength: 20 }).map((each) => each.replaceAll('\0', ''));
  const key = fc.oneof(
    text,
    fc.constantFrom('', '\\', 'SOFTWARE', 'SOFTWARE\\Policies', OTHER, 'SYSTEM\\\\x\\'),
    fc.tuple(fc.constantFrom('SOFTWARE\\Policies\\', `${OTHER}\\`, '\\\\'), text).map((names) => names.join('')),
    fc.integer({ min: 200, max: 2000 }).map((length) => `SOFTWARE\\Policies\\${'x'.repeat(length)}`),
  );
  const codes = ['**del.', '**delvals.', '**DelVals', '**DeleteValues', '**soft.', '**SecureKey', '**'];
  const foreign: fc.Arbitrary<PolEntry> = fc.record({
    key,
    name: fc.oneof(
      text,
      fc.tuple(fc.constantFrom(...codes), text).map((parts) => parts.join('')),
    ),
    type: fc.oneof(fc.nat(12), fc.nat(0xffff_ffff)),
    data: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  });

  test('fifty of any kind around the entries of a profile do not change it', async () => {
    const whole = [
      ...profile,
      polList(`${LOCKED}\\containerEngine\\allowedImages`, 'patterns', ['a', 'b']),
      polNumber(`${PRODUCT}\\Defaults`, 'version', 19),
      polNumber(`${PRODUCT}\\Defaults\\kubernetes`, 'port', 6444),
    ];
    const expected = (await read(...whole)).map(({ part, settings }) => ({ part, settings }));
    const around = fc.array(fc.tuple(foreign, fc.nat(whole.length)), { minLength: 50, maxLength: 50 });
    await fc.assert(
      fc.asyncProperty(around, async (others) => {
        const entries = [...whole, undefined].flatMap((own, index) => [
          ...others.filter(([, place]) => place === index).map(([entry]) => entry),
          ...(own ? [own] : []),
        ]);
        const parts = await read(...entries);
        expect(parts.map(({ part, settings }) => ({ part, settings }))).toEqual(expected);
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('what Group Policy stores for a policy', () => {
  const imported = async (states: ReadonlyMap<string, PolicyState>) => {
    const cwd = temporaryDirectory();
    mkdirSync(join(cwd, 'Machine'));
    writeFileSync(join(cwd, 'Machine', 'Registry.pol'), polFile(groupPolicyEntries(ADMX, states)));
    const { exit, out, err } = await rdctl(['import-profile', '--strict', '-o', 'json', 'Machine/Registry.pol'], {
      cwd,
      env: {},
    });
    const { settings, locked = {} }: { settings: JsonObject; locked?: JsonObject } = exit === 0 ? JSON.parse(out) : {};
    return { exit, err, settings, locked };
  };

  test('with any of its values is imported as that setting, without losses', async () => {
    await checkEach(policyValues(), async ({ policy, value }) => {
      const settings: JsonObject = { version: 19 };
      const locked: JsonObject = {};
      setLeaf(settings, policy.field.path, value);
      if (policy.part === 'locked') setLeaf(locked, policy.field.path, true);
      for (const { path } of value === true ? policy.needs : []) {
        setLeaf(settings, path, true);
        if (policy.part === 'locked') setLeaf(locked, path, true);
      }
      const result = await imported(new Map([[policy.name, stateFor(policy, value)]]));
      expect(result).toEqual({ exit: 0, err: expect.stringContaining(' 0 lost\n'), settings, locked });
    });
  });

  test('that is disabled is imported without losses', async () => {
    const settings = { version: 19 };
    await checkEach(
      namedPolicies(({ field }) => field.type !== 'boolean'),
      async ({ name }) => {
        const result = await imported(new Map<string, PolicyState>([[name, 'disabled']]));
        expect(result).toEqual({ exit: 0, err: expect.stringContaining(' 0 lost\n'), settings, locked: {} });
      },
    );
  });

  test('a table starts with a deletion of what the computer had in it', () => {
    const [policy] = policies().filter(({ field }) => field.type === 'map<string,string>');
    if (!policy) throw new Error('no policy is a table');
    const key = `${policy.key}\\${policy.valueName}`;
    const entries = groupPolicyEntries(ADMX, new Map([[policy.name, stateFor(policy, { 'org/name': '1.0' })]]));
    expect(entries.filter((entry) => entry.key === key)).toEqual([
      { key, name: '**delvals.', type: 1, data: Buffer.from(' \0', 'utf16le') },
      polText(key, 'org/name', '1.0'),
    ]);
  });

  test('all of a part combined', async () => {
    for (const part of PARTS) {
      const own = policyValues().flatMap(([, each]) => (each.policy.part === part ? [each] : []));
      const states = new Map(own.map(({ policy, value }) => [policy.name, stateFor(policy, value)]));
      const settings: JsonObject = { version: 19 };
      for (const { policy, value } of own) setLeaf(settings, policy.field.path, value);
      expect(await imported(states)).toMatchObject({ exit: 0, settings });
    }
  });
});

describe('a malformed file', () => {
  const whole = polFile([VERSION, polText(`${LOCKED}\\images`, 'namespace', 'team')]);

  test('every truncation is refused with its position', async () => {
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
    [
      'an empty name in the path',
      polFile([polNumber(`${PRODUCT}\\\\Locked`, 'x', 1)]),
      'byte 8: the path contains an empty name',
    ],
    [
      'an empty name above the key of the product',
      polFile([polNumber(`\\software\\\\policies\\rancher desktop\\Locked`, 'x', 1)]),
      'byte 8: the path contains an empty name',
    ],
    [
      'half a character',
      polFile([{ key: LOCKED, name: 'x', type: 1, data: Buffer.from('xyz') }]),
      'byte 8: a string ends in the middle of a character',
    ],
  ])('%s', async (_name, bytes, message) => {
    expect((await refusal(bytes)).message).toBe(`Registry.pol: ${message}`);
  });

  test('without a profile', async () => {
    expect((await refusal(polFile([]))).message).toBe('Registry.pol contains no deployment profile');
  });

  test('a size larger than the file', async () => {
    const bytes = polFile([VERSION]);
    bytes.writeUInt32LE(0xffff_fff0, bytes.length - 12);
    expect((await refusal(bytes)).message).toContain('4294967280 bytes are declared, and missing');
  });

  test('another file is not taken for a policy file', () => {
    expect(registryPolImporter.recognizes(whole)).toBe(true);
    for (const other of ['', 'PRe', 'preg', 'REGEDIT4']) {
      expect(registryPolImporter.recognizes(Buffer.from(other)), other).toBe(false);
    }
  });
});
