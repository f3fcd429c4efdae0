import { describe, expect, test } from 'vitest';
import { regImporter } from '../../profiles/formats/reg.ts';
import type { PolicyPrograms } from '../../profiles/policies/places.ts';
import { systemParts } from '../../profiles/policies/read.ts';
import { RdError } from '../../src/errors.ts';
import { answering, holding } from '../helpers/policy-programs.ts';

const COMPUTER = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop';
const USER = 'HKEY_CURRENT_USER\\SOFTWARE\\Policies\\Rancher Desktop';
const OLDER = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Rancher Desktop\\Profile';

const bytes = (...lines: string[]) => Buffer.from(['Windows Registry Editor Version 5.00', ...lines, ''].join('\r\n'));
const read = (...lines: string[]) => regImporter.read(bytes(...lines), 'p.reg');

async function refusal(...lines: string[]): Promise<RdError> {
  const error = await read(...lines).catch((cause: unknown) => cause);
  if (!(error instanceof RdError)) throw new Error('it was read', { cause: error });
  expect(error.code).toBe('ERR_PROFILE_INVALID');
  return error;
}

test('a version of another type is kept', async () => {
  const [part] = await read(
    `[${COMPUTER}\\Locked]`,
    '"version"="10"',
    `[${COMPUTER}\\Locked\\images]`,
    '"showAll"=dword:1',
  );
  expect(part).toMatchObject({ settings: { version: '10', images: { showAll: true } }, lost: [] });
});

test('a file that ends within a line may be truncated, which is reported once', async () => {
  const whole = bytes(`[${COMPUTER}\\Locked]`, '"version"=dword:13', `[${COMPUTER}\\Defaults]`, '"version"=dword:13');
  expect((await regImporter.read(whole, 'p.reg')).map(({ notes }) => notes)).toEqual([undefined, undefined]);
  // The number differs, and the file is well-formed.
  const cut = await regImporter.read(whole.subarray(0, -3), 'p.reg');
  expect(cut.map(({ settings }) => settings.version)).toEqual([19, 1]);
  const note = 'p.reg: the last line has no line ending; make sure that the file is complete.';
  expect(cut.map(({ notes }) => notes)).toEqual([[note], undefined]);
});

test('both parts at one location, locked first, with what belongs to neither', async () => {
  const parts = await read(
    '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies]',
    `[${COMPUTER}]`,
    '"stray"=dword:1',
    `[${COMPUTER}\\Defaults]`,
    '"version"=dword:13',
    `[${COMPUTER}\\LOCKED]`,
    '"Version"=dword:13',
    '@="nobody looks"',
    `[${COMPUTER}\\LOCKED\\KUBERNETES]`,
    '"Enabled"=dword:2',
    '"prot"=dword:1',
    `[${COMPUTER}\\LOCKED\\wsl\\integrations]`,
    '"Debian"=dword:1',
    '"(Default)"=dword:0',
    `[${COMPUTER}\\LOCKED\\wsl\\integrations\\deep]`,
    '"x"=dword:1',
    '"y"=dword:1',
    `[${COMPUTER}\\LOCKED\\nothing\\at\\all]`,
    '"x"=dword:1',
    '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Other\\Deep]',
    '"x"=dword:1',
    '"y"=dword:1',
    '[HKEY_CLASSES_ROOT\\.x]',
  );
  const not = 'it is not part of a deployment profile';
  expect(parts).toEqual([
    {
      part: 'locked',
      source: `p.reg: ${COMPUTER}\\LOCKED`,
      settings: {
        version: 19,
        kubernetes: { enabled: true },
        WSL: { integrations: { Debian: true, '(Default)': false } },
      },
      lost: [
        { place: `${COMPUTER}\\LOCKED: @`, reason: 'the application does not read it' },
        { place: `${COMPUTER}\\LOCKED\\kubernetes: prot`, reason: 'it is not a setting' },
        {
          place: `${COMPUTER}\\LOCKED\\WSL\\integrations\\deep`,
          reason: 'the application does not read it (2 values)',
        },
        { place: `${COMPUTER}\\LOCKED\\nothing`, reason: 'it is not a setting (1 value)' },
        { place: `${COMPUTER}: stray`, reason: not },
      ],
      notes: ['p.reg: 2 values in keys of other programs are not part of a profile and were ignored.'],
    },
    { part: 'defaults', source: `p.reg: ${COMPUTER}\\Defaults`, settings: { version: 19 }, lost: [] },
  ]);
});

describe('several locations: the application takes both parts from the first that has either', () => {
  const users = 'HKEY_USERS\\S-1-5-21-7\\SOFTWARE\\Policies\\Rancher Desktop';
  const older = 'HKEY_CURRENT_USER\\SOFTWARE\\Rancher Desktop\\Profile';
  test.each([
    [[OLDER, users, USER, COMPUTER], COMPUTER],
    [[OLDER, users, USER], USER],
    [[older, OLDER, users], users],
    [[older, OLDER], OLDER],
    [[older], older],
  ])('%j', async (keys, taken) => {
    const parts = await read(
      ...keys.flatMap((key) => [`[${key}\\Locked]`, '"version"=dword:13', `[${key}\\Defaults]`]),
    );
    expect(parts.map(({ source }) => source)).toEqual([`p.reg: ${taken}\\Locked`]);
    expect(new Set(parts[0]?.lost)).toEqual(
      new Set(
        keys
          .filter((key) => key !== taken)
          .map((key) => ({
            place: `${key}\\Locked`,
            reason: `the application takes both profiles from ${taken}, where it looks first (1 value)`,
          })),
      ),
    );
  });

  test('a key with unknown values is no profile', async () => {
    const parts = await read(`[${COMPUTER}\\Locked]`, '"unheard"=dword:1', `[${USER}\\Defaults]`, '"version"=dword:13');
    expect(parts).toEqual([
      {
        part: 'defaults',
        source: `p.reg: ${USER}\\Defaults`,
        settings: { version: 19 },
        lost: [{ place: `${COMPUTER}\\Locked: unheard`, reason: 'it is not a setting' }],
      },
    ]);
  });
});

test('wrong types are reported as lost, with their types and without values', async () => {
  const [part] = await read(
    `[${COMPUTER}\\Locked]`,
    '"version"=dword:13',
    `[${COMPUTER}\\Locked\\kubernetes]`,
    '"enabled"="my secret"',
    '"port"=hex(b):1,0,0,0,0,0,0,0',
    '"version"=hex(2):31,0,0,0',
    `[${COMPUTER}\\Locked\\images]`,
    `[${COMPUTER}\\Locked\\images\\namespace]`,
    '"x"="y"',
    `[${COMPUTER}\\Locked\\WSL]`,
    '"integrations"=dword:1',
    `[${COMPUTER}\\Locked\\WSL\\integrations]`,
    '"a"=dword:2',
    `[${COMPUTER}\\Locked\\containerEngine\\allowedImages\\patterns]`,
    '"x"="y"',
  );
  const refused = 'the application refuses the whole profile because of it: expected';
  const at = (path: string) => `${COMPUTER}\\Locked\\${path}`;
  expect(part?.settings).toEqual({ version: 19, WSL: { integrations: {} } });
  expect(part?.lost).toEqual([
    {
      place: at('kubernetes: enabled'),
      reason: `${refused} boolean, found REG_SZ`,
      refused: true,
      names: ['kubernetes', 'enabled'],
    },
    {
      place: at('kubernetes: port'),
      reason: `${refused} number, found REG_QWORD`,
      refused: true,
      names: ['kubernetes', 'port'],
    },
    {
      place: at('kubernetes: version'),
      reason: `${refused} string, found REG_EXPAND_SZ`,
      refused: true,
      names: ['kubernetes', 'version'],
    },
    {
      place: at('images\\namespace'),
      reason: `${refused} string, found a key (1 value)`,
      refused: true,
      names: ['images', 'namespace'],
    },
    {
      place: at('WSL: integrations'),
      reason: `${refused} object, found REG_DWORD`,
      refused: true,
      names: ['WSL', 'integrations'],
    },
    {
      place: at('WSL\\integrations: a'),
      reason: `${refused} boolean, found REG_DWORD other than 0 and 1`,
      refused: true,
      names: ['WSL', 'integrations', 'a'],
    },
    { place: at('containerEngine\\allowedImages\\patterns'), reason: 'it is not a setting (1 value)' },
  ]);
});

describe('values of foreign keys are counted', () => {
  const VERSION = [`[${COMPUTER}\\Locked]`, '"version"=dword:13'];
  const ours = (place: string) => [{ place, reason: 'it is not part of a deployment profile (1 value)' }];

  test.each([
    [
      'values',
      ['[HKCU\\Software\\Other\\Deep]', '"x"=dword:1', '"y"=dword:1', '[HKLM\\SOFTWARE]', '"z"=dword:1'],
      '3 values',
    ],
    ['one', ['[HKCU\\Software\\Policies\\Other]', '"x"=dword:1'], '1 value'],
    ['one set twice', ['[HKCU\\Software\\Other]', '"x"=dword:1', '"x"=dword:2'], '2 values'],
    ['a key without values', ['[HKCU\\Software\\Other]'], undefined],
  ])('%s', async (_, lines, words) => {
    const [part] = await read(...VERSION, ...lines);
    expect(part?.lost).toEqual([]);
    expect(part?.notes).toEqual(words && [expect.stringContaining(`p.reg: ${words} in keys of other programs `)]);
  });

  test.each([
    [`${COMPUTER}\\Lokced`],
    ['HKEY_LOCAL_MACHINE\\SOFTWARE\\WOW6432Node\\Policies\\rancher desktop'],
    ['HKEY_LOCAL_MACHINE\\SOFTWARE\\Rancher Desktop'],
  ])('but not those in a key of the application: %s', async (key) => {
    const [part] = await read(
      ...VERSION,
      `[${key}]`,
      '"x"=dword:1',
      '[HKLM\\SOFTWARE\\WOW6432Node\\Other]',
      '"x"=dword:1',
    );
    const values = key.endsWith('Rancher Desktop') && !key.includes('WOW');
    expect(part?.lost).toEqual(
      values ? [{ place: `${key}: x`, reason: 'it is not part of a deployment profile' }] : ours(key),
    );
    expect(part?.notes).toEqual([expect.stringContaining('1 value in')]);
  });
});

test('a profile without a version is read by the newest names', async () => {
  const [part] = await read(`[${COMPUTER}\\Locked\\kubernetes]`, '"enabled"=dword:1');
  expect(part).toEqual({
    part: 'locked',
    source: `p.reg: ${COMPUTER}\\Locked`,
    settings: { kubernetes: { enabled: true } },
    lost: [],
  });
});

test('an older profile keeps its names and types, also of removed settings', async () => {
  const [part] = await read(
    `[${OLDER}\\Locked]`,
    '"version"=dword:7',
    `[${OLDER}\\Locked\\experimental\\virtualMachine]`,
    '"networkingTunnel"=dword:1',
    `[${OLDER}\\Locked\\experimental\\virtualMachine\\mount\\9p]`,
    '"msizeInKB"=dword:1',
  );
  expect(part?.lost).toEqual([]);
  expect(part?.settings).toEqual({
    version: 7,
    experimental: { virtualMachine: { networkingTunnel: true, mount: { '9p': { msizeInKB: 1 } } } },
  });
});

describe('refused', () => {
  test.each([
    ['a line that cannot be parsed', '"a"="C:\\x"', 'a single "\\" in the string must be written as "\\\\"'],
    ['the deletion of a value', '"debug"=-', 'it is a deletion, and profiles can only set values'],
    ['the deletion of a key', `[-${COMPUTER}\\Locked]`, 'it is a deletion, and profiles can only set values'],
    ['a deletion of another program', '[-HKCU\\Software\\Other]', 'it is a deletion, and profiles can only set values'],
    ['a value that is set to something else', '"VERSION"=dword:a', 'the file sets this value twice, differently'],
  ])('%s, with its position', async (_name, line, reason) => {
    const error = await refusal(`[${COMPUTER}\\Locked]`, '"version"=dword:13', line, 'what');
    expect(error.message).toBe(`p.reg:4: ${reason}`);
    expect(error.advice).toContain('reg export');
  });

  test('a file of another kind', async () => {
    const error = await regImporter.read(Buffer.from('REGEDIT5\n'), 'p.reg').catch((cause: unknown) => cause);
    expect(error).toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: 'p.reg: the first line is not "Windows Registry Editor Version 5.00"',
      advice: expect.stringContaining('reg export'),
    });
  });

  test('a file without a profile, with what it contains', async () => {
    const error = await refusal('[HKCU\\Software\\Other]', '"password"="secret"', `[${COMPUTER}\\Locked]`);
    expect(error.message).toBe('p.reg contains no deployment profile');
    expect(error.details).toEqual([
      'HKEY_CURRENT_USER\\Software\\Other: it is not part of a deployment profile (1 value)',
    ]);
    const many = await refusal(...Array.from({ length: 30 }, (_, index) => `[HKCU\\k${index}]`));
    expect(many.details).toHaveLength(21);
    expect(many.details.at(-1)).toBe('and 10 more');
  });
});

describe('the live registry', () => {
  const registryProfiles = async (key: string, programs: PolicyPrograms) =>
    (await systemParts({ places: [{ format: 'registry', key }], programs })).parts;
  const KEY = 'HKLM\\SOFTWARE\\Policies\\Rancher Desktop';
  const out = [
    `${COMPUTER}`,
    '    stray    REG_SZ    x',
    '',
    `${COMPUTER}\\Locked`,
    '    version    REG_DWORD    0x13',
    '    what    REG_QWORD    0x1',
    '',
    `${COMPUTER}\\WSL`,
    '    x    REG_SZ    y',
    '',
  ].join('\r\n');

  test('one location', async () => {
    const { programs } = answering(holding(KEY, out));
    expect(await registryProfiles(KEY, programs)).toEqual([
      {
        part: 'locked',
        source: `${KEY}\\Locked`,
        platform: 'win32',
        settings: { version: 19 },
        lost: [
          { place: `${KEY}\\Locked: what`, reason: 'it is not a setting' },
          { place: `${KEY}: stray`, reason: 'it is not part of a deployment profile' },
          { place: `${KEY}\\WSL`, reason: 'it is not part of a deployment profile (1 value)' },
        ],
      },
    ]);
  });

  test('nothing at a location, or nothing that counts', async () => {
    expect(await registryProfiles(KEY, answering({}).programs)).toEqual([]);
    const { programs } = answering(holding(KEY, `${COMPUTER}\\Locked\r\n    x    REG_SZ    y\r\n`));
    expect(await registryProfiles(KEY, programs)).toEqual([]);
  });

  test('one that is unreadable', async () => {
    const parent = 'HKLM\\SOFTWARE\\Policies';
    const { programs } = answering({ [`query ${parent}`]: { out: `${COMPUTER}\r\n` } });
    await expect(registryProfiles(KEY, programs)).rejects.toThrow('cannot be read');
  });
});
