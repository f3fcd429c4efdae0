import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeRegistryFile, type Hive, isAscii, type Part } from '../../profiles/formats/format.ts';
import { regExporter, regText } from '../../profiles/formats/reg.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { FLEET_VERSIONS, profileArbitrary } from '../helpers/fleet-arbitrary.ts';
import { anyText } from '../helpers/hostile-text.ts';
import { runs } from '../helpers/rounds.ts';

const LOCKED = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\locked';
const ALL: JsonObject = JSON.parse(JSON.stringify(defaultSettings({ platform: 'linux', arch: 'x64' })));

async function reg(settings: JsonObject, hive: Hive = 'hklm', part: Part = 'locked'): Promise<string> {
  return regText(await deploymentTree(settings), hive, part);
}

/** Lines below the key of the profile, which is abbreviated, and below the version. */
async function regLines(settings: JsonObject): Promise<string[]> {
  const lines = (await reg(settings)).replaceAll(LOCKED, '~').split('\n');
  expect(lines[4]).toBe('"version"=dword:13');
  return lines.slice(5, -1);
}

describe('the text', () => {
  // Byte for byte the first example in 7.4 of the tool facts.
  test('a locked profile of the current user', async () => {
    const settings = {
      kubernetes: { enabled: false },
      containerEngine: { allowedImages: { patterns: ['abc', 'ghi'] } },
      WSL: { integrations: { second: false, First: true } },
      virtualMachine: { memoryInGB: 16 },
    };
    await expect(await reg(settings, 'hkcu')).toMatchFileSnapshot('../golden/profiles/locked-user.reg');
  });

  test('values come before sections, each sorted case-insensitively', async () => {
    const application = { adminAccess: false, updater: { enabled: false }, pathManagementStrategy: 'manual' };
    expect(await regLines({ application: { ...application, autoStart: false } })).toEqual([
      '[~\\application]',
      '"adminAccess"=dword:0',
      '"autoStart"=dword:0',
      '"pathManagementStrategy"="manual"',
      '[~\\application\\updater]',
      '"enabled"=dword:0',
    ]);
    expect(await regLines({ kubernetes: { port: 6443, version: '1.29.5', enabled: true } })).toEqual([
      '[~\\kubernetes]',
      '"enabled"=dword:1',
      '"port"=dword:192b',
      '"version"="1.29.5"',
    ]);
    expect(await regLines({ application: { extensions: { installed: { 'b/x': 'latest', 'A/y': '1.0' } } } })).toEqual([
      '[~\\application]',
      '[~\\application\\extensions]',
      '[~\\application\\extensions\\installed]',
      '"A/y"="1.0"',
      '"b/x"="latest"',
    ]);
  });

  test('the sections of all settings', async () => {
    const sections = (await reg(ALL))
      .split('\n')
      .filter((line) => line.startsWith(`[${LOCKED}\\`))
      .map((line) => line.slice(LOCKED.length + 2, -1))
      .filter((name) => !name.includes('\\'));
    expect(sections.join(' ')).toBe(
      'application containerEngine containers diagnostics experimental images kubernetes portForwarding virtualMachine WSL',
    );
  });

  test.each([
    [[], '00,00'],
    [['a'], '61,00,00,00,00,00'],
    [['é😀'], 'e9,00,3d,d8,00,de,00,00,00,00'],
    [['a\n', '\ud800'], '61,00,0a,00,00,00,00,d8,00,00,00,00'],
  ])('the list %j', async (patterns, hex) => {
    const lines = await regLines({ containerEngine: { allowedImages: { patterns } } });
    expect(lines.at(-1)).toBe(`"patterns"=hex(7):${hex}`);
  });

  test('a list on one line of any length', async () => {
    const patterns = Array.from({ length: 1000 }, (_, index) => `registry.example/${index}`);
    const lines = await regLines({ containerEngine: { allowedImages: { patterns } } });
    expect(lines).toHaveLength(3);
    expect(
      readReg(await reg({ containerEngine: { allowedImages: { patterns } } })).at('containerEngine\\allowedImages'),
    ).toEqual({
      patterns,
    });
  });

  test.each([
    ['C:\\a "b"', '"C:\\\\a \\"b\\""'],
    ['', '""'],
    [' ; a=b [c] % @', '" ; a=b [c] % @"'],
    ['é😀\u2028\ufeff\u202e', '"é😀\u2028\ufeff\u202e"'],
    ['a\nb', 'hex(1):61,00,0a,00,62,00,00,00'],
    ['\t', 'hex(1):09,00,00,00'],
    ['\u007f\u0085', 'hex(1):7f,00,85,00,00,00'],
    ['\ud800', 'hex(1):00,d8,00,00'],
    ['\udc00\ud800', 'hex(1):00,dc,00,d8,00,00'],
    ['\uffff', 'hex(1):ff,ff,00,00'],
    ['\u{1fffe}', 'hex(1):3f,d8,fe,df,00,00'],
  ])('the string %j', async (locale, data) => {
    expect((await regLines({ application: { locale } })).at(-1)).toBe(`"locale"=${data}`);
  });

  test.each([
    ['a"\\b', '"a\\"\\\\b"'],
    ['a=b', '"a=b"'],
    ['[x]', '"[x]"'],
    ['@', '"@"'],
    [';', '";"'],
    ['(Default)', '"(Default)"'],
    [' pad ', '" pad "'],
    ['__proto__', '"__proto__"'],
    ['constructor', '"constructor"'],
    ['é\u2028', '"é\u2028"'],
    ['x'.repeat(255), `"${'x'.repeat(255)}"`],
  ])('the name %j of an entry', async (name, written) => {
    const settings: JsonObject = JSON.parse(`{"WSL":{"integrations":{${JSON.stringify(name)}:true}}}`);
    expect((await regLines(settings)).at(-1)).toBe(`${written}=dword:1`);
  });

  test('an empty map keeps its key', async () => {
    expect(await regLines({ WSL: { integrations: {} } })).toEqual(['[~\\WSL]', '[~\\WSL\\integrations]']);
  });

  test('an empty profile is just the first line', () => {
    expect(regText(new Map(), 'hklm', 'locked')).toBe('Windows Registry Editor Version 5.00\n');
  });

  test('the version, the hive and the part', async () => {
    expect(await reg({}, 'hklm', 'defaults')).toBe(
      [
        'Windows Registry Editor Version 5.00',
        '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies]',
        '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop]',
        '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\defaults]',
        '"version"=dword:13',
        '',
      ].join('\n'),
    );
    expect(await reg({ version: 10 })).toContain('"version"=dword:a\n');
    expect(regExporter.text(await deploymentTree({}), { hive: 'hkcu', part: 'locked' })).toBe(await reg({}, 'hkcu'));
    expect(regExporter.fileName('defaults', 'hklm')).toBe('defaults.reg');
    expect(regExporter.fileName('defaults', 'hkcu')).toBe('defaults.hkcu.reg');
  });

  test.each([
    [0, '0'],
    [15, 'f'],
    [2 ** 32 - 1, 'ffffffff'],
  ])('the number %d', async (interval, hex) => {
    const lines = await regLines({ diagnostics: { connectivity: { interval } } });
    expect(lines.at(-1)).toBe(`"interval"=dword:${hex}`);
  });

  test('a string of a megabyte', async () => {
    for (const sign of ['y', '"', '\n']) {
      const locale = sign.repeat(2 ** 20);
      expect(readReg(await reg({ application: { locale } })).at('application')).toEqual({ locale });
    }
  });
});

describe('refusals', () => {
  const entry = (name: string, value: JsonValue = true): JsonObject =>
    JSON.parse(`{"WSL":{"integrations":{${JSON.stringify(name)}:${JSON.stringify(value)}}}}`);

  test.each<[string, JsonObject, string]>([
    ['a negative number', { kubernetes: { port: -1 } }, 'kubernetes.port: a DWORD holds numbers from 0 to 4294967295'],
    ['a number of 33 bits', { kubernetes: { port: 2 ** 32 } }, 'kubernetes.port: a DWORD holds numbers from 0 to'],
    ['NUL in a string', { application: { locale: 'a\0b' } }, 'application.locale: a string ends at a NUL character'],
    ['NUL at the end', { application: { locale: 'a\0' } }, 'application.locale: a string ends at a NUL character'],
    [
      'NUL in a list',
      { containerEngine: { allowedImages: { patterns: ['a', 'b\0c'] } } },
      'containerEngine.allowedImages.patterns[1]: a string ends at a NUL character',
    ],
    ...[[''], ['a', ''], ['', 'a'], ['a', '', 'b']].map((patterns): [string, JsonObject, string] => [
      `the list ${JSON.stringify(patterns)}`,
      { containerEngine: { allowedImages: { patterns } } },
      `containerEngine.allowedImages.patterns[${patterns.indexOf('')}]: a list of strings ends at an empty one`,
    ]),
    ['a line end in a name', entry('a\nb'), 'WSL.integrations["a\\nb"]: its name contains a control character'],
    ['NUL in a name', entry('a\0'), 'WSL.integrations["a\\u0000"]: its name contains a control character'],
    ['DEL in a name', entry('\u007f'), 'WSL.integrations["\\u007f"]: its name contains a control character'],
    [
      'half a pair in a name',
      entry('\ud800x'),
      'WSL.integrations["\\ud800x"]: its name contains a control character or an unpaired',
    ],
    ['an empty name', entry(''), 'WSL.integrations[""]: its name is empty, which is the name of the default value'],
    ['a name of 256 units', entry('x'.repeat(256)), '…"]: its name has more than 255 UTF-16 units'],
    ['a name of 128 pairs', entry('😀'.repeat(128)), '…"]: its name has more than 255 UTF-16 units'],
    [
      'names that differ in case',
      { WSL: { integrations: { Ubuntu: true, ubuntu: false } } },
      'WSL.integrations.ubuntu: its name differs from WSL.integrations.Ubuntu in letter case alone',
    ],
    [
      'names that differ in case beyond ASCII',
      { application: { extensions: { installed: { Ärger: 'a', ärger: 'b' } } } },
      'application.extensions.installed.ärger: its name differs from application.extensions.installed.Ärger',
    ],
    [
      'names that are one when they are put in capitals',
      { WSL: { integrations: { σ: true, ς: true } } },
      'WSL.integrations.σ: its name differs from WSL.integrations.ς in letter case alone',
    ],
  ])('%s', async (_, settings, message) => {
    await expect(reg(settings)).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: 'the registry cannot represent these values:',
      details: [expect.stringContaining(message)],
    });
  });

  test('names that are longer in uppercase are not equal', async () => {
    const lines = await regLines({ WSL: { integrations: { ß: true, ss: true } } });
    expect(lines).toHaveLength(4);
  });

  test('everything at once, without values', async () => {
    const settings = {
      version: 19,
      kubernetes: { port: -4711 },
      experimental: { virtualMachine: { proxy: { password: 'se\0cret', noproxy: ['', ''] } } },
    };
    const error = await reg(settings).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      details: [
        'experimental.virtualMachine.proxy.noproxy[0]: a list of strings ends at an empty one',
        'experimental.virtualMachine.proxy.noproxy[1]: a list of strings ends at an empty one',
        'experimental.virtualMachine.proxy.password: a string ends at a NUL character',
        'kubernetes.port: a DWORD holds numbers from 0 to 4294967295',
      ],
    });
    expect(JSON.stringify(error)).not.toMatch(/cret|4711/);
  });
});

describe('any profile', () => {
  const texts = { value: anyText(), key: anyText() };
  const profiles = fc.oneof(...FLEET_VERSIONS.map((version) => profileArbitrary(version, texts)));

  test('is written in the documented lines with its values, or refused', async () => {
    await fc.assert(
      fc.asyncProperty(profiles, async (settings) => {
        let text: string;
        try {
          text = await reg(settings);
        } catch (error) {
          expect(error).toBeInstanceOf(RdError);
          expect(isImpossible(settings)).toBe(true);
          return;
        }
        expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cs}]/u);
        expect(readReg(text).settings(settings)).toEqual(settings);
      }),
      { numRuns: runs(150) },
    );
  });

  test('is the same text in both encodings', async () => {
    await fc.assert(
      fc.asyncProperty(profiles, async (settings) => {
        const text = await reg(settings).catch(() => undefined);
        if (text === undefined) return;
        const [narrow, wide] = [encodeRegistryFile(text, 'utf-8'), encodeRegistryFile(text, 'utf-16le')];
        expect(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(narrow)).toBe(text);
        const lines = new TextDecoder('utf-16le', { fatal: true, ignoreBOM: true }).decode(wide);
        expect(lines.replaceAll('\r\n', '\n')).toBe(`\ufeff${text}`);
        expect(isAscii(text)).toBe(narrow.length === text.length);
      }),
      { numRuns: runs(150) },
    );
  });
});

test('the bytes of a registry editor file', () => {
  expect([...encodeRegistryFile('a\né\n', 'utf-16le')]).toEqual([
    0xff, 0xfe, 0x61, 0, 0x0d, 0, 0x0a, 0, 0xe9, 0, 0x0d, 0, 0x0a, 0,
  ]);
  expect([...encodeRegistryFile('a\né\n', 'utf-8')]).toEqual([0x61, 0x0a, 0xc3, 0xa9, 0x0a]);
  expect([isAscii(''), isAscii('a\n~\u007f'), isAscii('\u0080')]).toEqual([true, true, false]);
});

/** Whether the settings contain something the registry cannot hold. */
function isImpossible(value: JsonValue): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (Array.isArray(value)) return value.some((entry) => entry === '' || isImpossible(entry));
  if (!isObject(value)) return false;
  const names = Object.keys(value);
  const cases = [
    names.map((name) => name.toLowerCase()),
    names.map((name) => Array.from(name, (sign) => sign.toUpperCase().slice(0, sign.length)).join('')),
  ];
  return (
    cases.some((folded) => new Set(folded).size < names.length) ||
    names.some((name) => name === '' || name.length > 255 || /[\p{Cc}\p{Cs}]/u.test(name)) ||
    Object.values(value).some(isImpossible)
  );
}

/** A separate parser, as strict as the documented lines: keys below that of the profile, by name. */
function readReg(text: string) {
  const [first, policies, product, own, ...lines] = text.split('\n');
  expect([first, lines.pop()]).toEqual(['Windows Registry Editor Version 5.00', '']);
  const root = own?.slice(1, -1) ?? '';
  expect([`${product?.slice(0, -1)}\\locked]`, `${policies?.slice(0, -1)}\\Rancher Desktop]`]).toEqual([own, product]);
  const keys = new Map<string, Map<string, JsonValue>>([['', new Map()]]);
  let key = '';
  for (const line of lines) {
    if (line.startsWith('[')) {
      expect(line.startsWith(`[${root}\\`) && line.endsWith(']')).toBe(true);
      key = line.slice(root.length + 2, -1);
      expect(keys.has(key)).toBe(false);
      keys.set(key, new Map());
      continue;
    }
    const [, name = '', data = ''] = /^"((?:[^"\\]|\\["\\])+)"=(.*)$/su.exec(line) ?? [];
    expect(keys.get(key)?.has(unescaped(name))).toBe(false);
    keys.get(key)?.set(unescaped(name), readData(data));
  }
  const at = (path: string) => Object.fromEntries(keys.get(path) ?? []);
  return { at, settings: (like: JsonObject) => shaped(like, '', keys) };
}

function readData(data: string): JsonValue {
  if (/^dword:(0|[1-9a-f][0-9a-f]{0,7})$/.test(data)) return Number.parseInt(data.slice(6), 16);
  if (data.startsWith('"')) {
    expect(data).toMatch(/^"(?:[^"\\]|\\["\\])*"$/u);
    return unescaped(data.slice(1, -1));
  }
  const [, type, list = ''] = /^hex\(([17])\):([0-9a-f,]+)$/.exec(data) ?? [];
  // Split, because a repeated group on a megabyte is too much for some engines.
  const bytes = list.split(',');
  expect(bytes.every((byte) => /^[0-9a-f]{2}$/.test(byte))).toBe(true);
  const words = Buffer.from(bytes.join(''), 'hex').toString('utf16le');
  if (type === '1') {
    expect(words.indexOf('\0')).toBe(words.length - 1);
    return words.slice(0, -1);
  }
  expect(type).toBe('7');
  if (words === '\0') return [];
  expect(words.endsWith('\0\0')).toBe(true);
  const entries = words.slice(0, -2).split('\0');
  expect(entries).not.toContain('');
  return entries;
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gsu, '$1');
}

/** What was read, with booleans where the settings have them: the registry only has numbers. */
function shaped(like: JsonObject, path: string, keys: ReadonlyMap<string, ReadonlyMap<string, JsonValue>>): JsonObject {
  const inner = [...keys.keys()]
    .filter((key) => key !== '' && key.slice(0, Math.max(0, key.lastIndexOf('\\'))) === path)
    .map((key) => key.slice(path === '' ? 0 : path.length + 1));
  const entries = [...(keys.get(path) ?? [])].map(([name, value]): [string, JsonValue] => {
    const wanted = Object.hasOwn(like, name) ? like[name] : undefined;
    return [name, typeof wanted === 'boolean' && (value === 0 || value === 1) ? value === 1 : value];
  });
  const sections = inner.map((name): [string, JsonValue] => {
    const wanted = Object.hasOwn(like, name) ? like[name] : undefined;
    return [name, shaped(isObject(wanted) ? wanted : {}, path === '' ? name : `${path}\\${name}`, keys)];
  });
  return Object.fromEntries([...entries, ...sections]);
}
