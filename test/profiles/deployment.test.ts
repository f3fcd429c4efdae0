import { spawnSync } from 'node:child_process';
import { parse } from 'plist';
import { describe, expect, test } from 'vitest';
import type { Part } from '../../profiles/deployment/part.ts';
import { deploymentTree } from '../../profiles/deployment/tree.ts';
import type { Hive } from '../../profiles/export/exporter.ts';
import { PLIST_ORDER, plistText } from '../../profiles/export/plist.ts';
import { regText } from '../../profiles/export/reg.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { type SchemaNode, schemaTree } from '../../src/settings/fields.ts';

const LOCKED = 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\locked';

function reg(settings: JsonObject, hive: Hive = 'hklm', type: Part = 'locked'): string {
  return regText(deploymentTree(settings), hive, type);
}

/** Lines below the key of the profile, which is abbreviated, without the version. */
function regLines(settings: JsonObject): string[] {
  const lines = reg({ version: null, ...settings })
    .replaceAll(LOCKED, '~')
    .split('\n');
  return lines.slice(4, -1);
}

function plist(settings: JsonObject): string {
  return plistText(deploymentTree(settings));
}

const ALL: JsonObject = JSON.parse(JSON.stringify(defaultSettings({ platform: 'linux', arch: 'x64' })));

describe('reg', () => {
  test('a locked profile of the present user', async () => {
    const settings = {
      kubernetes: { enabled: false },
      containerEngine: { allowedImages: { patterns: ['abc', 'ghi'] } },
      WSL: { integrations: { second: false, First: true } },
      virtualMachine: { memoryInGB: 16 },
    };
    await expect(reg(settings, 'hkcu')).toMatchFileSnapshot('../golden/profiles/locked-user.reg');
  });

  test('values come before sections, each sorted without regard to case', () => {
    const application = { adminAccess: false, updater: { enabled: false }, pathManagementStrategy: 'manual' };
    expect(regLines({ application: { ...application, autoStart: false } })).toEqual([
      '[~\\application]',
      '"adminAccess"=dword:0',
      '"autoStart"=dword:0',
      '"pathManagementStrategy"="manual"',
      '[~\\application\\updater]',
      '"enabled"=dword:0',
    ]);
    expect(regLines({ kubernetes: { port: 6443, version: '1.29.5', enabled: true } })).toEqual([
      '[~\\kubernetes]',
      '"enabled"=dword:1',
      '"port"=dword:192b',
      '"version"="1.29.5"',
    ]);
    expect(regLines({ application: { extensions: { installed: { 'b/x': 'latest', 'A/y': '1.0' } } } })).toEqual([
      '[~\\application]',
      '[~\\application\\extensions]',
      '[~\\application\\extensions\\installed]',
      '"A/y"="1.0"',
      '"b/x"="latest"',
    ]);
  });

  test('the sections of all settings', () => {
    const sections = reg(ALL)
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
    [[''], '00,00'],
    [['', ''], '00,00,00,00,00,00'],
    [['a'], '61,00,00,00,00,00'],
    [['é😀'], 'e9,00,3d,d8,00,de,00,00,00,00'],
  ])('the list %j', (patterns, hex) => {
    expect(regLines({ containerEngine: { allowedImages: { patterns } } }).at(-1)).toBe(`"patterns"=hex(7):${hex}`);
  });

  test.each([
    ['C:\\a "b"', '"C:\\\\a \\"b\\""'],
    ['', '""'],
    ['a\nb', 'hex(1):61,00,0a,00,62,00,00,00'],
  ])('the string %j', (locale, data) => {
    expect(regLines({ application: { locale } }).at(-1)).toBe(`"locale"=${data}`);
  });

  test('names of entries are escaped', () => {
    expect(regLines({ WSL: { integrations: { 'a"\\b': true } } }).at(-1)).toBe('"a\\"\\\\b"=dword:1');
  });

  test('what follows a nested object stays in its section', () => {
    const lines = regLines({ WSL: { integrations: { a: { x: true }, b: false } } });
    expect(lines).toEqual([
      '[~\\WSL]',
      '[~\\WSL\\integrations]',
      '"b"=dword:0',
      '[~\\WSL\\integrations\\a]',
      '"x"=dword:1',
    ]);
  });

  test('nothing to write is the first line alone', () => {
    expect(reg({ version: null, kubernetes: {}, images: null })).toBe('Windows Registry Editor Version 5.00\n');
  });

  test('the version', () => {
    expect(reg({}, 'hklm', 'defaults')).toContain('\\defaults]\n"version"=dword:13\n');
    expect(reg({ version: 10 })).toContain('"version"=dword:a\n');
  });

  test.each<[JsonObject, string]>([
    [
      { kubernetes: { port: -1 } },
      'kubernetes.port: expected a number from 0 to 4294967295, which is what a DWORD holds',
    ],
    [{ kubernetes: { port: 2 ** 32 } }, 'kubernetes.port: expected a number from 0'],
    [{ application: { locale: 'a\0b' } }, 'application.locale: expected a string without NUL characters'],
    [{ WSL: { integrations: { 'a\nb': true } } }, 'its name holds a control character'],
    [{ WSL: { integrations: { 'a\\b': { c: true } } } }, 'cannot hold a backslash'],
  ])('%j cannot be written', (settings, message) => expect(() => reg(settings)).toThrow(message));

  test('a program that reads registry files finds the values again', () => {
    const read = readReg(reg(ALL));
    expect(read.get(`${LOCKED}\\kubernetes`)?.get('port')).toBe(ALL.kubernetes && leaf(ALL, 'kubernetes', 'port'));
    expect(read.get(`${LOCKED}\\experimental\\virtualMachine\\proxy`)?.get('noproxy')).toEqual(
      leaf(ALL, 'experimental', 'virtualMachine', 'proxy', 'noproxy'),
    );
    expect(read.get(`${LOCKED}\\application\\window`)?.get('quitOnClose')).toBe(0);
  });
});

function leaf(object: JsonObject, ...names: string[]): JsonValue | undefined {
  return names.reduce<JsonValue | undefined>((at, name) => (isObject(at) ? at[name] : undefined), object);
}

/** A reader of its own, as strict as the format: keys and values by key. */
function readReg(text: string): Map<string, Map<string, JsonValue>> {
  const keys = new Map<string, Map<string, JsonValue>>();
  const [first, ...lines] = text.split('\n');
  expect([first, lines.pop()]).toEqual(['Windows Registry Editor Version 5.00', '']);
  let key = '';
  for (const line of lines) {
    const section = /^\[(.+)\]$/.exec(line)?.[1];
    if (section !== undefined) {
      key = section;
      keys.set(key, new Map());
      continue;
    }
    const [, name = '', data = ''] = /^"((?:[^"\\]|\\["\\])+)"=(.*)$/.exec(line) ?? [];
    const dword = /^dword:([0-9a-f]{1,8})$/.exec(data)?.[1];
    const string = /^"((?:[^"\\]|\\["\\])*)"$/.exec(data)?.[1];
    const hex = /^hex\(7\):((?:[0-9a-f]{2},)*[0-9a-f]{2})$/.exec(data)?.[1];
    if (dword !== undefined) keys.get(key)?.set(name, Number.parseInt(dword, 16));
    else if (string !== undefined) keys.get(key)?.set(name, string.replace(/\\(.)/g, '$1'));
    else if (hex !== undefined) {
      const bytes = Buffer.from(hex.split(',').map((digits) => Number.parseInt(digits, 16)));
      keys.get(key)?.set(name, bytes.toString('utf16le').replace(/\0+$/, '').split('\0'));
    } else throw new Error(`not a line of a registry file: ${line}`);
  }
  return keys;
}

describe('plist', () => {
  test('text that has to be escaped, an empty list and an empty map', async () => {
    const settings = {
      kubernetes: { version: 'a&b' },
      containerEngine: { allowedImages: { patterns: [] } },
      WSL: { integrations: {} },
    };
    await expect(plist(settings)).toMatchFileSnapshot('../golden/profiles/escaped.plist');
  });

  test('all settings', async () => {
    await expect(plist(ALL)).toMatchFileSnapshot('../golden/profiles/all.plist');
  });

  test('the order of members is written for every section', () => {
    const look = (nodes: ReadonlyMap<string, SchemaNode>, path: string) => {
      const names = [...nodes.keys()];
      const order = PLIST_ORDER[path];
      if (names.length > 1 || order) expect([path, [...names].sort()]).toEqual([path, [...(order ?? [])].sort()]);
      for (const [name, node] of nodes)
        if ('section' in node) look(node.section, path === '' ? name : `${path}.${name}`);
    };
    look(schemaTree(), '');
  });

  test('signs', () => {
    const signs = '<>&"\'\t\n\r\u0001\ufffe\ud800é😀\u0085';
    expect(plist({ application: { locale: signs } })).toContain(
      '<string>&lt;&gt;&amp;&#34;&#39;&#x9;&#xA;&#xD;\ufffd\ufffd\ufffdé😀\u0085</string>',
    );
  });

  test('empty sections and null leave no key behind', () => {
    const text = plist({ kubernetes: {}, images: null, containers: { showAll: null }, diagnostics: { nothing: 1 } });
    expect([...text.matchAll(/<key>(.*?)<\/key>/g)].map((match) => match[1])).toEqual(['version']);
  });

  test('another reader gets the settings back', () => {
    expect(parse(plist(ALL))).toEqual(ALL);
    expect(parse(plist({ kubernetes: { port: -3 }, application: { locale: ' <&> "\'\n' } }))).toMatchObject({
      kubernetes: { port: -3 },
      application: { locale: ' <&> "\'\n' },
    });
  });

  test('so does the one of Python', (context) => {
    const program = 'import json,plistlib,sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))';
    const settings = { ...ALL, WSL: { integrations: { 'a<b': true, Ubuntu: false } } };
    const ran = spawnSync('python3', ['-c', program], { input: plist(settings), encoding: 'utf8' });
    if (ran.error) return context.skip('python3 is not installed');
    expect(ran.stderr).toBe('');
    expect(JSON.parse(ran.stdout)).toEqual(settings);
  });
});

describe('what is read', () => {
  test.each<[JsonObject, string]>([
    [{ kubernetes: 5 }, 'kubernetes: expected an object with settings, got a number'],
    [{ kubernetes: [] }, 'kubernetes: expected an object with settings, got a list'],
    [{ containerEngine: { allowedImages: { patterns: 'a' } } }, 'patterns: expected a list of strings, got a string'],
    [{ containerEngine: { allowedImages: { patterns: ['a', 5] } } }, 'patterns[1]: expected a string, got a number'],
    [{ kubernetes: { version: 1.3 } }, 'kubernetes.version: expected a string, got a number'],
    [{ kubernetes: { enabled: 'yes' } }, 'kubernetes.enabled: expected true or false, got a string'],
    [{ kubernetes: { port: '6443' } }, 'kubernetes.port: expected a number, got a string'],
    [{ version: '19' }, 'version: expected a number, got a string'],
    [{ WSL: { integrations: ['a'] } }, 'WSL.integrations: expected an object with entries, got a list'],
    [{ WSL: { integrations: { a: null } } }, 'WSL.integrations.a: expected true or false, got null'],
  ])('%j is refused', (settings, message) => {
    expect(() => deploymentTree(settings)).toThrow(
      expect.objectContaining({ code: 'ERR_PROFILE_INVALID', message: expect.stringContaining(message) }),
    );
  });

  test('every mistake is named, and no value', () => {
    const settings = { kubernetes: { enabled: 'secret-1', port: 'secret-2' } };
    expect(() => deploymentTree(settings)).toThrow(
      expect.objectContaining({
        details: [
          'kubernetes.port: expected a number, got a string',
          'kubernetes.enabled: expected true or false, got a string',
        ],
      }),
    );
  });

  test.each<[JsonObject, string]>([
    [{ Kubernetes: {} }, 'Kubernetes is no setting and was left out. Did you mean kubernetes?'],
    [{ images: { showall: true } }, 'images.showall is no setting and was left out. Did you mean images.showAll?'],
    [{ version: null }, 'version is null, so the profile gets none'],
    [{ kubernetes: { port: 1.7 } }, 'kubernetes.port is no whole number; its fraction was cut off.'],
    [{ WSL: { integrations: { a: 1 } } }, 'WSL.integrations.a is a number; the application expects true or false.'],
    [{ WSL: { integrations: { a: 'b' } } }, 'WSL.integrations.a is a string; the application expects true or false.'],
  ])('%j is warned of', (settings, warning) => {
    expect(deploymentTree(settings).warnings).toEqual([expect.stringContaining(warning)]);
  });

  test('numbers of maps are the same in both formats', () => {
    const settings = { WSL: { integrations: { a: 1 } } };
    expect(reg(settings)).toContain('"a"=dword:1\n');
    expect(plist(settings)).toContain('<key>a</key>\n        <integer>1</integer>');
  });

  test('names that every object has are no settings', () => {
    const settings: JsonObject = JSON.parse('{"__proto__":{"a":1},"constructor":{},"kubernetes":{"toString":1}}');
    expect(deploymentTree(settings).warnings).toHaveLength(3);
  });
});
