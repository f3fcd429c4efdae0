import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalKubernetesVersion, isKubernetesVersion, parseByteSize } from '../../src/settings/canonical.ts';
import { isExtensionName, parseExtensionPattern } from '../../src/settings/extension-image.ts';
import { isImageTag } from '../../src/settings/image-reference.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { isNoproxyEntry } from '../../src/settings/rules.ts';

describe('byte sizes', () => {
  test.each([
    ['100GiB', 107_374_182_400],
    ['100 gib', 107_374_182_400],
    ['100GIB', 107_374_182_400],
    ['2048', 2048],
    ['2048b', 2048],
    ['7ib', 7],
    ['90k', 90_000],
    ['90mb', 90_000_000],
    ['1.5 KiB', 1536],
    ['3T', 3_000_000_000_000],
    ['1y', 1e24],
  ])('%s', (text, bytes) => {
    expect(parseByteSize(text)).toBe(bytes);
  });

  test.each([
    '',
    ' ',
    '1.GiB',
    '.5g',
    '1  kib',
    '1ki',
    '-1',
    '+1',
    '1,000',
    '10 stuff',
    '1GiB ',
    ' 1GiB',
    '1e3',
    '\u0661',
    '1'.repeat(400),
  ])('rejects %j', (text) => {
    expect(parseByteSize(text)).toBeUndefined();
  });

  test('a larger number in the same unit is a larger size', () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000),
        fc.nat(1_000_000),
        fc.constantFrom('', 'b', 'k', 'MB', ' GiB', 'tib'),
        (a, b, unit) => {
          const [first = 0, second = 0] = [parseByteSize(`${a}${unit}`), parseByteSize(`${b}${unit}`)];
          expect(Math.sign(first - second)).toBe(Math.sign(a - b));
        },
      ),
    );
  });
});

describe('image names', () => {
  test.each(['a', 'org/name', 'a.b/c', 'ghcr.io/org/name', 'Ghcr.IO:5000/x', 'a__b', 'a-----b', 'x/y/z', 'a.b'])(
    'accepts %s',
    (name) => {
      expect(isExtensionName(name)).toBe(true);
    },
  );
  test.each([
    '',
    '/',
    'a/',
    '/a',
    'A',
    'a b',
    'a..b',
    'a___b',
    '-a',
    'a-',
    'a:1',
    'localhost:5000/x',
    'ghcr.io:70000/x',
    'ghcr.io:/x',
    'a//b',
    'a.',
    'é',
  ])('rejects %j', (name) => {
    expect(isExtensionName(name)).toBe(false);
  });

  test.each<[string, ReturnType<typeof parseExtensionPattern>]>([
    ['org/name', { name: 'org/name' }],
    ['org/name:1.2', { name: 'org/name', tag: '1.2' }],
    ['org/', { name: 'org/' }],
    ['ghcr.io/', { registry: 'ghcr.io', name: '' }],
    ['ghcr.io', { name: 'ghcr.io' }],
    ['ghcr.io:443/a/b:t', { registry: 'ghcr.io:443', name: 'a/b', tag: 't' }],
    ['ghcr.io/org/', { registry: 'ghcr.io', name: 'org/' }],
    ['', undefined],
    ['/', undefined],
    [':tag', undefined],
    ['org//', undefined],
    ['Org/name', undefined],
    ['org/name:', undefined],
    ['org/name@sha256:00', undefined],
  ])('pattern %j', (text, pattern) => {
    expect(parseExtensionPattern(text)).toEqual(pattern);
  });

  test('tags have 1 to 128 characters and start with a word character', () => {
    expect(['a', '_1', '1.2-x', 'A'.repeat(128)].every(isImageTag)).toBe(true);
    expect(['', '.a', '-a', 'a b', 'a\n', 'A'.repeat(129)].some(isImageTag)).toBe(false);
  });

  test.each(['a', 'a-', 'a.', 'a_', 'a/', 'a.b/', '-', '/', ':', 'a:', '1.'])(
    'a hundred thousand times %j and a wrong character is rejected in time',
    (part) => {
      const hostile = `${part.repeat(100_000)}!`;
      expect(isExtensionName(hostile)).toBe(false);
      expect(parseExtensionPattern(hostile)).toBeUndefined();
      expect(isNoproxyEntry(hostile)).toBe(false);
      expect(parseByteSize(hostile)).toBeUndefined();
      expect(canonicalKubernetesVersion(hostile)).toBe(hostile);
    },
  );
});

describe('proxy exceptions', () => {
  test.each([
    '10.0.0.1',
    '10.0.0.0/8',
    '10.1.2.3/08',
    '::1',
    'fe80::1/64',
    'fe80::1%eth0',
    'localhost',
    'a.example',
    '*.example.com',
    '.example.com',
    '300.1.1.1',
    '1.2.3',
    'A-1.b',
  ])('accepts %s', (entry) => {
    expect(isNoproxyEntry(entry)).toBe(true);
  });
  test.each([
    '',
    ' ',
    ' 10.0.0.1',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/a',
    '::/129',
    '[::1]',
    '10.0.0.1:80',
    'a_b',
    'a.',
    '*.',
    '.',
    '*',
    'a.*.b',
    '*.10.0.0.1',
    '-a',
    'a-',
    'x'.repeat(64),
    `${'a.'.repeat(127)}ab`,
  ])('rejects %j', (entry) => {
    expect(isNoproxyEntry(entry)).toBe(false);
  });
});

describe('cluster versions', () => {
  test.each([
    ['v1.30.2', '1.30.2'],
    ['1.30.2+k3s1', '1.30.2'],
    ['v1.30.2+k3s12', '1.30.2'],
    ['1.30.2+k3s', '1.30.2+k3s'],
    ['1.30.2', '1.30.2'],
    ['1.30', '1.30'],
    ['v1.30.2-rc1', 'v1.30.2-rc1'],
    ['1.30.2+other', '1.30.2+other'],
    ['', ''],
  ])('%j is %j', (text, plain) => {
    expect(canonicalKubernetesVersion(text)).toBe(plain);
  });

  test('a version has three parts', () => {
    expect(['1.30.2', '1.30.2-rc1'].every(isKubernetesVersion)).toBe(true);
    expect(['', '1.30', 'karl', 'v1.30.2', '1.30.2+k3s1', '1.30.2 '].some(isKubernetesVersion)).toBe(false);
  });
});

test.each<[string, string[], string | undefined]>([
  ['versoin', ['version', 'port'], 'version'],
  ['Enabled', ['enabled'], 'enabled'],
  ['conatinerEngine', ['containerEngine', 'containers'], 'containerEngine'],
  ['memoryGB', ['memoryInGB', 'numberCPUs'], 'memoryInGB'],
  ['x', ['port', 'qemu'], undefined],
  ['prt', ['port'], 'port'],
  ['totally-different', ['version', 'port'], undefined],
  ['', ['a'], undefined],
])('the name nearest to %j', (name, candidates, expected) => {
  expect(nearest(name, candidates)).toBe(expected);
});
