import fc from 'fast-check';
import { parse } from 'plist';
import { describe, expect, test } from 'vitest';
import { PLIST_ORDER, plistExporter, plistText } from '../../profiles/formats/plist.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { type SchemaNode, schemaTree } from '../../src/settings/fields.ts';
import { put } from '../../src/settings/own.ts';
import { FLEET_VERSIONS, profileArbitrary } from '../helpers/fleet-arbitrary.ts';
import { anyText, isXmlText } from '../helpers/hostile-text.ts';
import { runs } from '../helpers/rounds.ts';

const ALL: JsonObject = JSON.parse(JSON.stringify(defaultSettings({ platform: 'linux', arch: 'x64' })));

async function plist(settings: JsonObject): Promise<string> {
  return plistText(await deploymentTree(settings));
}

describe('the text', () => {
  // Byte for byte the example in 7.5 of the tool facts.
  test('text that needs escaping, an empty list and an empty map', async () => {
    const settings = {
      kubernetes: { version: 'a&b' },
      containerEngine: { allowedImages: { patterns: [] } },
      WSL: { integrations: {} },
    };
    await expect(await plist(settings)).toMatchFileSnapshot('../golden/profiles/escaped.plist');
  });

  test('all settings at their defaults', async () => {
    await expect(await plist(ALL)).toMatchFileSnapshot('../golden/profiles/all.plist');
  });

  test('the order of members is that of the schema in every section', () => {
    const look = (nodes: ReadonlyMap<string, SchemaNode>, path: string) => {
      const names = [...nodes.keys()];
      const order = PLIST_ORDER[path];
      if (names.length > 1 || order) expect([path, [...names].sort()]).toEqual([path, [...(order ?? [])].sort()]);
      for (const [name, node] of nodes)
        if ('section' in node) look(node.section, path === '' ? name : `${path}.${name}`);
    };
    look(schemaTree(), '');
  });

  test('members of older versions follow the current ones', async () => {
    const text = await plist({ version: 4, telemetry: true, kubernetes: { memoryInGB: 4, port: 6443 }, debug: false });
    expect([...text.matchAll(/<key>(.*?)<\/key>/g)].map((match) => match[1])).toEqual([
      'version',
      'kubernetes',
      'port',
      'memoryInGB',
      'telemetry',
      'debug',
    ]);
  });

  test.each([
    ['<>&"\'', '&lt;&gt;&amp;&#34;&#39;'],
    ['\t\n\r\r\n', '&#x9;&#xA;&#xD;&#xD;&#xA;'],
    ['', ''],
    ['  a ', '  a '],
    ['é😀\u007f\u0085\u2028\ufeff\ufdd0\u{1fffe}', 'é😀\u007f\u0085\u2028\ufeff\ufdd0\u{1fffe}'],
    [']]><!-- -->', ']]&gt;&lt;!-- --&gt;'],
  ])('the string %j', async (text, written) => {
    expect(await plist({ application: { locale: text } })).toContain(`\n      <string>${written}</string>\n`);
    const settings: JsonObject = JSON.parse(`{"WSL":{"integrations":{${JSON.stringify(text)}:true}}}`);
    expect(await plist(settings)).toContain(`\n        <key>${written}</key>\n        <true/>\n`);
  });

  test.each([0, -3, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])('the number %d', async (port) => {
    expect(await plist({ kubernetes: { port } })).toContain(`\n      <integer>${port}</integer>\n`);
  });

  test('names of object members are ordinary entries', async () => {
    const settings: JsonObject = JSON.parse('{"WSL":{"integrations":{"constructor":true,"__proto__":false}}}');
    expect(await plist(settings)).toContain(
      '        <key>__proto__</key>\n        <false/>\n        <key>constructor</key>\n        <true/>\n',
    );
  });

  test('another parser reads the settings back', async () => {
    expect(parse(await plist(ALL))).toEqual(ALL);
    const settings = { version: 19, kubernetes: { port: -3 }, application: { locale: ' <&> "\'\n\r\t ' } };
    expect(parse(await plist(settings))).toEqual(settings);
  });

  test('a string of a megabyte', async () => {
    const locale = '<y'.repeat(2 ** 19);
    expect(parse(await plist({ application: { locale } }))).toEqual({ version: 19, application: { locale } });
  });

  test('as an exporter', async () => {
    const tree = await deploymentTree(ALL);
    expect(plistExporter.text(tree, { hive: 'hklm', part: 'locked' })).toBe(plistText(tree));
    expect(plistExporter.fileName('locked', 'hklm')).toBe('io.rancherdesktop.profile.locked.plist');
  });
});

describe('refusals', () => {
  test.each([
    ['\0', 'XML cannot represent the control character U+0000'],
    ['a\u0007', 'XML cannot represent the control character U+0007'],
    ['\u001b[2J', 'XML cannot represent the control character U+001B'],
    ['\ud800', 'XML cannot represent an unpaired surrogate (U+D800)'],
    ['😀\udc00', 'XML cannot represent an unpaired surrogate (U+DC00)'],
    ['\ufffe', 'XML cannot represent U+FFFE, which is not a character'],
    ['a\uffff', 'XML cannot represent U+FFFF, which is not a character'],
  ])('%j', async (text, reason) => {
    await expect(plist({ application: { locale: text } })).rejects.toMatchObject({
      code: 'ERR_PROFILE_INVALID',
      message: 'a property list cannot represent these values:',
      details: [`application.locale: ${reason}`],
    });
    await expect(plist({ containerEngine: { allowedImages: { patterns: ['a', text] } } })).rejects.toMatchObject({
      details: [`containerEngine.allowedImages.patterns[1]: ${reason}`],
    });
    const settings: JsonObject = JSON.parse(`{"WSL":{"integrations":{${JSON.stringify(text)}:true}}}`);
    await expect(plist(settings)).rejects.toMatchObject({
      details: [expect.stringMatching(/^WSL\.integrations\[".*"\]: its name: XML cannot represent/)],
    });
  });

  test('everything at once, without values', async () => {
    const proxy = { password: 'se\u0001cret', username: '\0', noproxy: ['\ud800', 'a'] };
    const error = await plist({ experimental: { virtualMachine: { proxy } } }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      details: [
        'experimental.virtualMachine.proxy.password: XML cannot represent the control character U+0001',
        'experimental.virtualMachine.proxy.username: XML cannot represent the control character U+0000',
        'experimental.virtualMachine.proxy.noproxy[0]: XML cannot represent an unpaired surrogate (U+D800)',
      ],
    });
    expect(JSON.stringify(error)).not.toContain('cret');
  });
});

test('any profile is written in the documented lines with its values, or refused', async () => {
  const texts = { value: anyText(), key: anyText() };
  const profiles = fc.oneof(...FLEET_VERSIONS.map((version) => profileArbitrary(version, texts)));
  await fc.assert(
    fc.asyncProperty(profiles, async (settings) => {
      let text: string;
      try {
        text = await plist(settings);
      } catch (error) {
        expect(error).toBeInstanceOf(RdError);
        expect(everyText(settings).every(isXmlText)).toBe(false);
        return;
      }
      expect(everyText(settings).every(isXmlText)).toBe(true);
      expect(readPlist(text)).toEqual(settings);
    }),
    { numRuns: runs(150) },
  );
});

function everyText(value: JsonValue): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(everyText);
  return isObject(value) ? Object.entries(value).flatMap(([name, inner]) => [name, ...everyText(inner)]) : [];
}

/** A separate parser, as strict as the documented lines. */
function readPlist(text: string): JsonValue {
  const lines = text.split('\n');
  expect(lines.splice(0, 3)).toEqual([
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
  ]);
  expect(lines.splice(-3)).toEqual(['</plist>', '', '']);
  const value = readValue(lines, '  ');
  expect(lines).toEqual([]);
  return value;
}

function readValue(lines: string[], indent: string): JsonValue {
  const line = lines.shift() ?? '';
  expect(line.startsWith(indent)).toBe(true);
  const token = line.slice(indent.length);
  if (token === '<true/>' || token === '<false/>') return token === '<true/>';
  if (token === '<array>') {
    const entries: JsonValue[] = [];
    while (lines[0] !== `${indent}</array>`) entries.push(readValue(lines, `${indent}  `));
    lines.shift();
    return entries;
  }
  if (token === '<dict>') {
    const members: JsonObject = {};
    while (lines[0] !== `${indent}</dict>`) {
      const [, key = ''] = /^ *<key>([^<>"'\t\r]*)<\/key>$/s.exec(lines.shift() ?? '') ?? expect.fail('no key');
      put(members, plainText(key), readValue(lines, `${indent}  `));
    }
    lines.shift();
    return members;
  }
  const [, integer, string] =
    /^(?:<integer>(0|-?[1-9]\d*)<\/integer>|<string>([^<>"'\t\r]*)<\/string>)$/s.exec(token) ?? expect.fail(token);
  return integer === undefined ? plainText(string ?? '') : Number(integer);
}

const SIGNS: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&#34;': '"',
  '&#39;': "'",
  '&#x9;': '\t',
  '&#xA;': '\n',
  '&#xD;': '\r',
};

function plainText(text: string): string {
  return text.replace(/&[^;]*;?/g, (reference) => SIGNS[reference] ?? expect.fail(reference));
}
