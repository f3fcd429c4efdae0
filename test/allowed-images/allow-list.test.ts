import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createAllowList, explainImage, explainRegistry, isAllowed } from '../../src/allowed-images/allow-list.ts';
import { matchesGlob, matchesPattern, matchesRepository, parsePattern } from '../../src/allowed-images/pattern.ts';
import { formatReference, parseReference } from '../../src/settings/image-reference.ts';

const D1 = `sha256:${'a'.repeat(64)}`;
const D2 = `sha256:${'b'.repeat(64)}`;

describe.each([
  [
    'busybox',
    ['busybox', 'busybox:1.36', 'docker.io/library/busybox:x', `busybox@${D1}`, 'index.docker.io/busybox'],
    ['evil/busybox', 'ghcr.io/busybox', 'ghcr.io/library/busybox', 'busybox2', 'library/busybox/x'],
  ],
  [
    'busybox:1.36',
    ['busybox:1.36', 'docker.io/busybox:1.36'],
    [
      'busybox',
      'busybox:1.36.1',
      'busybox:1.37',
      'busybox.1/36',
      `busybox@${D1}`,
      `busybox:1.36@${D1}`,
      'x/busybox:1.36',
    ],
  ],
  ['library/busybox:1.*', ['busybox:1.36', 'busybox:1.'], ['busybox:10', 'busybox:latest']],
  ['busybox:1.36-Alpine', ['busybox:1.36-Alpine'], ['busybox:1.36-alpine']],
  [`busybox@${D1}`, [`busybox@${D1}`, `busybox:1.36@${D1}`], [`busybox@${D2}`, 'busybox', 'busybox:1.36']],
  [`busybox:1.36@${D1}`, [`busybox@${D1}`, `busybox:9@${D1}`], ['busybox:1.36', `busybox:1.36@${D2}`]],
  ['acme/tools', ['acme/tools', 'docker.io/acme/tools:2'], ['acme/tools/x', 'ghcr.io/acme/tools', 'tools']],
  ['Acme/Tools', ['acme/tools'], ['acme/other']],
  ['acme/', ['acme/a', 'acme/a/b:1'], ['acme', 'acmeevil/a', 'library/acme', 'ghcr.io/acme/a']],
  ['acme//', ['acme/a', 'acme/a/b:1'], ['acme', 'acmeevil/a']],
  ['acme/*', ['acme/a', 'acme/a/b:1'], ['acme', 'acmeevil/a']],
  ['acme/.*', ['acme/a', 'acme/a/b:1'], ['acmeevil/a']],
  ['acme/*:stable', ['acme/a:stable', 'acme/a/b:stable'], ['acme/a', `acme/a@${D1}`]],
  ['acme/web-*', ['acme/web-1', 'acme/web-a'], ['acme/web', 'acme/web-1/x', 'acme/aweb-1']],
  ['*/tools', ['acme/tools', 'library/tools'], ['a/b/tools', 'ghcr.io/acme/tools']],
  ['bus*', ['busybox', 'bus'], ['acme/bus']],
  ['docker.io', ['busybox', 'acme/tools:1'], ['ghcr.io/a/b']],
  ['docker.io/', ['busybox', 'acme/tools:1'], ['ghcr.io/a/b']],
  ['registry-1.docker.io/library/busybox', ['busybox'], ['alpine']],
  [
    'ghcr.io',
    ['ghcr.io/a', 'ghcr.io/a/b/c:1', 'GHCR.io:443/a'],
    ['busybox', 'evil.ghcr.io/a', 'ghcr.io.evil.com/a', 'ghcr.io:5000/a'],
  ],
  ['ghcr.io/acme/*', ['ghcr.io/acme/a/b'], ['ghcr.io/acme', 'ghcr.io/acmeevil/x']],
  [
    'registry.example.com:443/x',
    ['registry.example.com/x', 'registry.example.com:443/x:1'],
    ['registry.example.com:5000/x'],
  ],
  ['host:5000/x/*', ['host:5000/x/a', 'host:5000/x/a/b'], ['host:5000/x', 'host:5001/x/a', 'host/x/a']],
  ['localhost:5000/x', ['localhost:5000/x:1'], ['localhost/x', 'x']],
  ['localhost:5000', ['localhost:5000/x/y:1'], ['localhost/x', 'localhost:5000']],
  ['[::1]:5000/x', ['[::1]:5000/x:1'], ['[::1]:5001/x']],
  [
    '*.example.com/base',
    ['a.example.com/base', 'a.b.example.com/base'],
    ['example.com/base', 'a.example.com.evil/base', 'a.example.com:5000/base'],
  ],
  ['*', ['busybox', `ghcr.io/a/b@${D1}`, 'localhost:5000/x'], []],
] as const)('the pattern %s', (pattern, allowed, denied) => {
  test.each(allowed)('allows %s', (image) => expect(isAllowed([pattern], image)).toBe(true));
  test.each(denied)('denies %s', (image) => expect(isAllowed([pattern], image)).toBe(false));
});

test.each([
  ['', /blank/],
  ['  ', /blank/],
  ['/', /no name/],
  ['//', /no name/],
  [':1', /no name/],
  ['a//b', /empty/],
  ['foo/b[ao]r', /b\[ao\]r/],
  ['a b', /a b/],
  ['busybox:', /no tag/],
  ['busybox@sha256:1', /no digest/],
  ['busybox@', /no digest/],
  ['ghcr.io/:1', /no image/],
  ['acme/:1', /no image/],
  ['-x.y/z', /registry/],
  ['a'.repeat(600), /longer/],
  ['foo/(a|b)', /\(a\|b\)/],
])('%j matches nothing, with a reason', (pattern, why) => {
  expect(parsePattern(pattern)).toEqual({ unusable: expect.stringMatching(why) });
  const list = createAllowList([pattern, 'busybox']);
  expect(list.unusable).toEqual([{ pattern, reason: expect.stringMatching(why) }]);
  expect(list.allows({ registry: 'docker.io', repository: 'library/busybox', tag: '1' })).toBe(true);
});

test('an empty list allows nothing', () => {
  expect(isAllowed([], 'busybox')).toBe(false);
  expect(createAllowList([]).reaches('registry-1.docker.io')).toBe(false);
});

test('allowing every tag of an image takes a pattern for any tag', () => {
  const every = { registry: 'docker.io', repository: 'library/busybox' };
  expect(createAllowList(['busybox:1.36', 'busybox:*']).allows(every)).toBe(false);
  expect(createAllowList(['busybox']).allows(every)).toBe(true);
});

test.each([
  ['busybox:1.36', 'registry-1.docker.io', true],
  ['busybox', 'auth.docker.io', true],
  ['busybox', 'index.docker.io:443', true],
  // Layers are reached by what the registry answers, not by name.
  ['busybox', 'production.cloudflare.docker.com', false],
  ['busybox', 'ghcr.io', false],
  ['busybox', 'evil.docker.io', false],
  ['ghcr.io/acme/', 'ghcr.io:443', true],
  ['ghcr.io/acme/', 'pkg-containers.githubusercontent.com', false],
  ['ghcr.io/acme/', 'auth.docker.io', false],
  ['*.pkg.dev/x', 'europe-docker.pkg.dev', true],
  ['registry.k8s.io', 'europe-docker.pkg.dev', false],
  ['registry.*.io/x', 'sso.redhat.com', true],
  ['registry.example.com:5000/x', 'registry.example.com:5000', true],
  ['registry.example.com:5000/x', 'registry.example.com', false],
  ['*', 'anything.example', true],
])('a client that uses %s may connect to %s: %s', (pattern, host, reachable) => {
  expect(createAllowList([pattern]).reaches(host)).toBe(reachable);
});

test.each([
  ['busybox', 'docker.io/library/busybox'],
  ['acme/a:1', 'docker.io/acme/a:1'],
  ['GHCR.IO/a/b', 'ghcr.io/a/b'],
  [`a.b/c:1@${D1.toUpperCase()}`, `a.b/c:1@${D1}`],
  ['registry-1.docker.io/busybox', 'docker.io/busybox'],
])('%s is %s', (text, full) => expect(formatReference(parseReference(text) ?? never())).toBe(full));

test.each([
  '',
  '/',
  'a//b',
  'Busybox',
  'a:b:c',
  'a/b:',
  'x@y',
  'a b',
  '../x',
  'a/..',
  '-a.b/c',
  'a.b:99999999/c',
  'é',
  'x'.repeat(2000),
])('%j is not an image name and is never allowed', (text) => {
  expect(parseReference(text)).toBeUndefined();
  expect(isAllowed(['*'], text)).toBe(false);
});

test('a refusal names the image, the setting and the remedy on one line that fits in a header', () => {
  const image = parseReference('alpine:3') ?? never();
  const text = explainImage(image, ['busybox', 'é\n\r"', 'a', 'b', 'c', 'd', 'x'.repeat(90)]);
  expect(text).toContain('docker.io/library/alpine:3 is not among the allowed images');
  expect(text).toContain('containerEngine.allowedImages.patterns has busybox, ');
  expect(text).toContain(' and 2 more');
  expect(text).toContain('add docker.io/library/alpine:3 to that setting');
  expect(text).toMatch(/^[ -~]+$/);
  expect(explainRegistry('a.b', [])).toContain('is empty');
});

const word = fc.stringMatching(/^[a-z0-9]{1,8}$/);
const repository = fc.array(word, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const registry = fc.constantFrom('ghcr.io', 'a.b:5000', 'localhost:5000');

test('an image is allowed by its own name, its repository or any parent path, and by nothing else', () => {
  fc.assert(
    fc.property(registry, repository, word, word, (host, path, tag, other) => {
      const image = `${host}/${path}:${tag}`;
      const above = path.split('/').map((_, index, parts) => `${[host, ...parts.slice(0, index)].join('/')}/`);
      for (const pattern of [image, `${host}/${path}`, host, '*', ...above])
        expect(isAllowed([pattern], image)).toBe(true);
      expect(
        isAllowed(
          [`${host}/${path}:${tag}x`, `${host}/${path}x`, `${host}/${path}/${other}`, `z${host}/${path}`],
          image,
        ),
      ).toBe(false);
    }),
  );
});

test('removing patterns never allows more', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 12 })),
      fc.string({ maxLength: 12 }),
      repository,
      (patterns, more, image) => {
        if (isAllowed(patterns, image)) expect(isAllowed([...patterns, more], image)).toBe(true);
      },
    ),
  );
});

test('a glob matches what the equivalent regular expression matches', () => {
  const glob = fc.stringMatching(/^[ab*]{0,8}$/);
  fc.assert(
    fc.property(glob, fc.stringMatching(/^[ab]{0,10}$/), (pattern, text) => {
      expect(matchesGlob(pattern, text)).toBe(new RegExp(`^${pattern.replace(/\*+/g, '.*')}$`).test(text));
    }),
  );
});

test('the longest patterns are compared with the longest names in linear time', () => {
  const half = 'a'.repeat(120);
  const patterns = [`*${half}b`, `*${half}b*`, `${'*a'.repeat(120)}b`, `*${half}*b`].map((part) => `*.com/*/${part}`);
  const list = createAllowList(Array.from({ length: 10_000 }, (_, at) => patterns[at % patterns.length] ?? ''));
  // Of this process: other programs on the computer are not meant.
  const began = process.cpuUsage();
  for (let name = 0; name < 20; name += 1) {
    const image = `example.com/x/${'a'.repeat(240)}${name}`;
    expect(list.allows(parseReference(image) ?? never())).toBe(false);
  }
  // It takes a second. Going back to each star took a minute.
  expect(process.cpuUsage(began).user / 1_000).toBeLessThan(5_000);
});

test('the index of a list finds what comparing each pattern finds', () => {
  const part = fc.constantFrom('a', 'b', '*', 'a*', '*b');
  const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
  const registry = fc.constantFrom('', '', 'ghcr.io/', '*.io/', 'docker.io/', '*/');
  const end = fc.constantFrom('', '', '/', '/*', ':1', ':1*');
  const pattern = fc.tuple(registry, path, end).map((words) => words.join(''));
  const name = fc.tuple(fc.constantFrom('', 'ghcr.io/', 'quay.io/'), path, fc.constantFrom('', ':1', ':12'));
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 6 }), name, (patterns, words) => {
      const reference = parseReference(words.join('').replaceAll('*', 'a'));
      if (!reference) return;
      const list = createAllowList(patterns);
      const parsed = patterns.flatMap((text) => {
        const each = parsePattern(text);
        return 'pattern' in each ? [each.pattern] : [];
      });
      const { registry: host, repository } = reference;
      expect(list.allows(reference)).toBe(parsed.some((each) => matchesPattern(each, reference)));
      expect(list.allowsSomeOf(host, repository)).toBe(
        parsed.some((each) => matchesRepository(each, host, repository)),
      );
    }),
  );
});

test('any text is accepted without an error', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), fc.string({ unit: 'binary' }), (patterns, text) => {
      expect(typeof isAllowed(patterns, text)).toBe('boolean');
      expect(createAllowList(patterns).patterns).toEqual(patterns);
    }),
  );
});

function never(): never {
  throw new Error('no reference');
}
