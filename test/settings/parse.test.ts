import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../src/json.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { parseDocument } from '../../src/settings/parse.ts';

function findings(source: string | Uint8Array): string[] {
  return parseDocument(source, 'p.yaml').findings.map(formatFinding);
}

describe('readable documents', () => {
  test.each<[string, string, JsonValue]>([
    ['YAML', 'version: 19\nimages: {showAll: true}\n', { version: 19, images: { showAll: true } }],
    ['JSON indented with tabs', '{\n\t"a": [1,\n\t\t"\\u00e9\\/"],\n\t"b": null\n}\n', { a: [1, 'é/'], b: null }],
    ['a byte order mark', '\ufeffa: 1\n', { a: 1 }],
    ['Windows line ends', 'a: 1\r\nb: x\r\n', { a: 1, b: 'x' }],
    ['one document with its marks', '---\na: 1\n...\n', { a: 1 }],
    ['keys as they are written', '1.30: a\ntrue: b\n', { '1.30': 'a', true: 'b' }],
    ['an alias', 'a: &x {n: 1}\nb: *x\nc: *x\n', { a: { n: 1 }, b: { n: 1 }, c: { n: 1 } }],
    ['words that are booleans elsewhere', 'a: yes\nb: off\n', { a: 'yes', b: 'off' }],
    ['a name that merges elsewhere', '"<<": {a: 1}\nb: {<<: false}\n', { '<<': { a: 1 }, b: { '<<': false } }],
    ['names in quotes that begin comments elsewhere', '{"/*": 1, "//": 2}', { '/*': 1, '//': 2 }],
    ['a scalar', 'null\n', null],
  ])('%s', (_, source, value) => {
    const document = parseDocument(source, 'p.yaml');
    expect(document.findings).toEqual([]);
    expect(document.value).toEqual(value);
  });

  test('copies of an anchor are independent', () => {
    const { value } = parseDocument('a: &x {n: 1}\nb: *x\n', 'p.yaml');
    expect(value).toEqual({ a: { n: 1 }, b: { n: 1 } });
    const { a, b } = value as { a: object; b: object };
    expect(a).not.toBe(b);
  });

  test('positions and source text', () => {
    const document = parseDocument(
      'settings:\n  kubernetes:\n    version: 1.30 # minor\n    port:\n  list: [a, "b c"]\n  x/y: 1\n',
      'p.yaml',
    );
    expect(document.position('/settings/kubernetes/version')).toEqual({ line: 3, column: 14 });
    expect(document.position('/settings/kubernetes/version', 'key')).toEqual({ line: 3, column: 5 });
    expect(document.position('/settings/list/1')).toEqual({ line: 5, column: 13 });
    expect(document.position('/settings/x~1y', 'key')).toEqual({ line: 6, column: 3 });
    expect(document.position('/settings/nothing')).toBeUndefined();
    expect(document.position('')).toEqual({ line: 1, column: 1 });
    expect(document.sourceText('/settings/kubernetes/version')).toBe('1.30');
    expect(document.sourceText('/settings/list/1')).toBe('"b c"');
    expect(document.sourceText('/nothing')).toBeUndefined();
  });

  test('sixteen thousand keys', () => {
    const lines = Array.from({ length: 16_000 }, (_, index) => `key${index}: value number ${index}\n`);
    const document = parseDocument(lines.join(''), 'p.yaml');
    expect(document.findings).toEqual([]);
    expect(document.position('/key15999')).toEqual({ line: 16_000, column: 11 });
  });
});

test('U+007F is a letter in JSON, and a control character elsewhere', () => {
  expect(parseDocument('{"a": "x\u007f"}', 'p.json')).toMatchObject({ value: { a: 'x\u007f' }, findings: [] });
  expect(parseDocument('a: x\u007f', 'p.yaml').findings).toMatchObject([
    { message: 'the document contains the control character U+007F' },
  ]);
});

describe('documents with errors', () => {
  test.each<[string, string, string[]]>([
    ['an empty file', '', ['p.yaml:1:1: the document is empty']],
    ['only a comment', '# nothing\n', ['p.yaml:1:1: the document is empty']],
    ['two documents', 'a: 1\n---\nb: 2\n', ['p.yaml:2:1: a second document starts here; a file may contain only one']],
    ['a duplicate key', 'a: 1\nb:\n  c: 1\n  c: 2\n', ['p.yaml:4:3: the key "c" appears twice (/b/c)']],
    ['a prototype', '{"__proto__": {"a": 1}}', ['p.yaml:1:2: the key "__proto__" is not allowed (/__proto__)']],
    [
      'a constructor deep inside',
      'a:\n  constructor:\n    prototype: {x: 1}\n',
      ['p.yaml:2:3: the key "constructor" is not allowed (/a/constructor)'],
    ],
    ['tabs', 'a:\n\tb: 1\n', ['p.yaml:2:1: tabs are not allowed as indentation; use spaces']],
    [
      'another YAML version',
      '%YAML 1.1\n---\na: yes\n',
      ['p.yaml:1:1: the document declares a version other than YAML 1.2'],
    ],
    ['an unknown tag', 'a: !secret x\n', ['p.yaml:1:4: unknown tag; "!" starts a tag']],
    ['a number without end', 'a: .inf\n', ['p.yaml:1:4: .inf cannot be represented in JSON (/a)']],
    ['a list as a key', '? [a]\n: 1\n', ['p.yaml:1:3: a key must be a name']],
    ['an alias to nothing', 'a: *b\n', ['p.yaml:1:4: unknown alias; "*" starts an alias (/a)']],
    ['an alias to itself', 'a: &a [*a]\n', ['p.yaml:1:8: unknown alias; "*" starts an alias (/a/0)']],
    ['a control character', 'a: 1\nb: \u0000\n', ['p.yaml:2:4: the document contains the control character U+0000']],
    ['brackets without end', '['.repeat(10_000), ['p.yaml:1:101: the document is nested too deeply']],
    ['objects without end', '{"a":'.repeat(10_000), ['p.yaml:1:501: the document is nested too deeply']],
    [
      'values of values in an object',
      `{${'"a": '.repeat(30_000)}`,
      ['p.yaml:1:502: the document is nested too deeply'],
    ],
    [
      'a smaller indent that is none of those above, again and again',
      `a:\n  b:\n${'    c: 1\n   d: 1\n'.repeat(10_000)}`,
      ['p.yaml:199:8: the document is nested too deeply'],
    ],
    ['lists in lists', '- '.repeat(10_000), ['p.yaml:1:201: the document is nested too deeply']],
    ['more parts than any settings have', '- a\n'.repeat(200_000), ['p.yaml:50000:4: the document has too many parts']],
    ['ten megabytes', 'a'.repeat(10 * 1024 * 1024), ['p.yaml:1:1: the document has 10.0 MiB; at most 1 MiB is read']],
  ])('%s', (_, source, expected) => {
    expect(findings(source)).toEqual(expected);
  });

  test.each<[string, string]>([
    ['{"a": 1', '1:8: an object is not closed: a "}" is missing here'],
    [' \n{"a":{"b":1}\n', '3:1: an object is not closed: a "}" is missing here'],
    ['{"a": [1, 2}', '1:12: a list is not closed: a "]" is missing here'],
    ['[', '1:2: a list is not closed: a "]" is missing here'],
    ['{"a": "x}', '1:10: a string is not closed: a quotation mark is missing'],
    ['{"a" 1}', '1:6: a ":" or a "," is missing here'],
    ['{"a": 1 "b": 2}', '1:7: a "," is missing after this value'],
    ['{"a": 1\n"b": 2}', '1:7: a "," is missing after this value'],
    ['{,}', '1:2: unexpected ","'],
    ['{"a":: 1}', '1:6: unexpected ":"'],
    ['{"a":1}}', '1:8: unexpected content after the end of the document'],
    ['{"a":1} {"b":2}', '1:9: unexpected content after the end of the document'],
    ['{"a":1}\nb: 2', '2:1: unexpected content after the end of the document'],
    ['{"a": @}', '1:7: invalid start of a value'],
    ['{"a": "x\\q"}', '1:9: invalid escape sequence'],
  ])('one error in JSON is one finding in terms of JSON: %j', (source, line) => {
    expect(findings(source)).toEqual([`p.yaml:${line}`]);
  });

  test.each([
    'a: !hush',
    'a: !<hush>',
    'a: !hush!',
    'a: !x!hush b',
    'a: !!hush b',
    'a: *hush',
    'a: |hush\n b',
    'a: "b\\uhush"',
    'a: b\n%hush',
    '%hush x\n---\na: 1',
    '%YAML hush\n---\na: 1',
    'a: @hush',
    'a: "b"hush',
    'a: {b: 1}}hush',
    'a: ]hush',
    'a: &hush &hush b',
    'a: "b": hush',
    '{"a": "b"hush"}',
    '{"a": hush": 1}',
    '{"a": "\\xhush"}',
  ])('an error in a value does not show it: %j', (source) => {
    expect(findings(source)).not.toEqual([]);
    expect(findings(source).join()).not.toMatch(/[hu]{1,2}sh/);
  });

  test.each([
    ['a: {b: 1\n', 'p.yaml:2:1: an object is not closed: a "}" is missing here'],
    ['a: [b, 1\n', 'p.yaml:2:1: a list is not closed: a "]" is missing here'],
    ['a: "b\n', 'p.yaml:2:1: a string is not closed: a quotation mark is missing'],
    ['a: &x {b: 1}\nc:\n  <<: *x\n', 'p.yaml:3:3: merge keys ("<<") belong to YAML 1.1'],
    ['{ /* x */ "a": 1 }', 'p.yaml:1:3: a key begins with "/*": JSON has no comments'],
    ['a: 1\n// b: 2\n', 'p.yaml:2:1: a key begins with "//": JSON has no comments'],
    ['a:\n  // x\n  b: 1\n', 'p.yaml:2:3: a key begins with "//": JSON has no comments'],
    ['/*\n x\n*/\na: 1\n', 'p.yaml:1:1: a key begins with "/*": JSON has no comments'],
  ])('%j is reported in words of its author', (text, message) => {
    expect(findings(text)).toEqual([expect.stringContaining(message)]);
  });

  test('unlimited indentation', () => {
    const lines = Array.from({ length: 1000 }, (_, depth) => `${' '.repeat(depth)}a:\n`);
    expect(findings(lines.join(''))).toEqual(['p.yaml:101:101: the document is nested too deeply']);
  });

  test('exponential aliases', () => {
    const line = (name: string, of: string) => `${name}: &${name} [${Array.from({ length: 9 }, () => of).join(',')}]\n`;
    const bomb =
      line('a', 'x') + line('b', '*a') + line('c', '*b') + line('d', '*c') + line('e', '*d') + line('f', '*e');
    expect(findings(bomb)).toEqual(['p.yaml:5:14: the aliases expand to more than 100000 characters (/e/2)']);
  });

  test('bytes that are not UTF-8', () => {
    expect(findings(Buffer.from([0x61, 0x3a, 0x20, 0x78, 0x0a, 0x62, 0xff, 0x0a]))).toEqual([
      'p.yaml:2:2: the document is not UTF-8',
    ]);
    expect(findings(Buffer.from('\ufeffa: \ufffd\n'))).toEqual([]);
    const wide = Buffer.from('a: 1\n', 'utf16le');
    for (const bytes of [wide, Buffer.from('\ufeffa: 1\n', 'utf16le'), Buffer.from(wide).swap16()]) {
      expect(findings(bytes)).toEqual(['p.yaml:1:1: the document is UTF-16; save it as UTF-8']);
    }
  });

  test('a document that cannot be parsed has no value, one with a duplicate key has', () => {
    expect(parseDocument('a: [1', 'p.yaml').value).toBeUndefined();
    expect(parseDocument('a: 1\na: 2\nb: 3\n', 'p.yaml').value).toEqual({ a: 1, b: 3 });
  });

  test('a text that is not YAML at all is one finding', () => {
    expect(findings(readFileSync('README.md', 'utf8'))).toEqual([
      expect.stringMatching(/^p\.yaml:\d+:\d+: .+, and \d+ more syntax errors; is this file YAML\?$/),
    ]);
    expect(findings('a: "x\\q"\nb: %y\n')).toHaveLength(2);
  });

  test('no more than a hundred findings', () => {
    expect(findings('a: 1\n'.repeat(500))).toHaveLength(100);
  });
});

test('a finding is one line for any name', () => {
  const text = formatFinding({
    file: 'p.yaml',
    line: 1,
    column: 2,
    pointer: '/a\nb',
    message: 'unknown "\u001b[31m"',
    expected: 'x',
    suggestion: '"y"',
  });
  expect(text).toBe('p.yaml:1:2: unknown "\\u001b[31m" (/a\\u000ab); expected x; did you mean "y"?');
});
