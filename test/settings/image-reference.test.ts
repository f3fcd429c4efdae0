import { describe, expect, test } from 'vitest';
import { isAllowed } from '../../src/allowed-images/allow-list.ts';
import { parseExtensionImage, permits } from '../../src/settings/extension-image.ts';
import { formatReference, fullName, parseReference, registryOrigin } from '../../src/settings/image-reference.ts';

describe('references', () => {
  test.each([
    ['busybox', 'docker.io/library/busybox', undefined],
    ['busybox:1.36', 'docker.io/library/busybox', '1.36'],
    ['org/tool', 'docker.io/org/tool', undefined],
    ['docker.io/busybox:1', 'docker.io/library/busybox', '1'],
    ['index.docker.io/org/tool:1', 'docker.io/org/tool', '1'],
    ['registry.example.com:5000/team/tool', 'registry.example.com:5000/team/tool', undefined],
    ['registry.example.com:5000/tool:v1', 'registry.example.com:5000/tool', 'v1'],
    ['127.0.0.1:5000/a/b/c:latest', '127.0.0.1:5000/a/b/c', 'latest'],
    ['ghcr.io:443/a/b', 'ghcr.io/a/b', undefined],
  ])('%s', (text, whole, tag) => {
    const image = parseExtensionImage(text);
    expect(image && fullName(image)).toBe(whole);
    expect(image?.tag).toBe(tag);
    expect(image?.name).toBe(tag === undefined ? text : text.slice(0, -tag.length - 1));
  });

  test.each([
    '',
    ':1',
    'a b',
    'Upper/case',
    'a/',
    '/a',
    'a//b',
    'a:',
    'a:b:c',
    'a@sha256:00',
    'localhost:5000/a',
    'a:../x',
    '-registry.example.com/a',
    'registry-.example.com/-a',
  ])('rejects %j', (text) => {
    expect(parseExtensionImage(text)).toBeUndefined();
  });
});

describe.each(['docker.io', 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com', 'Docker.IO:443'])(
  '%s is Docker Hub',
  (alias) => {
    test('for extensions and allowed images alike', () => {
      const image = parseExtensionImage(`${alias}/org/tool:1`);
      expect(image && formatReference(image)).toBe('docker.io/org/tool:1');
      expect(parseReference(`${alias}/org/tool:1`)).toEqual(parseReference('org/tool:1'));
      const plain = parseExtensionImage('org/tool:1');
      expect(plain && permits([`${alias}/org/tool`], plain)).toBe(true);
      expect(isAllowed([`${alias}/org/tool`], 'org/tool:1')).toBe(true);
    });

    test('a one-part name means the same image for extensions and allowed images', () => {
      const image = parseExtensionImage(`${alias}/tool:1`);
      expect(image && formatReference(image)).toBe(formatReference(parseReference(`${alias}/tool:1`) ?? never()));
    });

    test('alone in the list of allowed extensions it permits official images only', () => {
      const [official, other] = [parseExtensionImage('tool:1'), parseExtensionImage('org/tool:1')];
      expect(official && permits([`${alias}/`], official)).toBe(true);
      expect(other && permits([`${alias}/`], other)).toBe(false);
    });
  },
);

test.each([
  ['docker.io', 'https://registry-1.docker.io'],
  ['ghcr.io', 'https://ghcr.io'],
  ['127.0.0.1:5000', 'http://127.0.0.1:5000'],
  ['localhost:5000', 'http://localhost:5000'],
])('the API of %s is at %s', (registry, origin) => expect(registryOrigin(registry)).toBe(origin));

describe('the list of allowed extensions', () => {
  test.each([
    ['org/tool', 'org/tool:1', true],
    ['org/tool', 'org/tool2:1', false],
    ['org/tool:1', 'org/tool:1', true],
    ['org/tool:1', 'org/tool:2', false],
    ['org/tool:1', 'org/tool', true],
    ['org/', 'org/tool:1', true],
    ['org/', 'organisation/tool:1', false],
    ['a/b/', 'a/b/c/d:1', true],
    ['tool', 'library/tool:1', true],
    ['tool', 'org/tool:1', false],
    ['docker.io/org/tool', 'org/tool:1', true],
    ['index.docker.io/org/tool', 'docker.io/org/tool:1', true],
    ['ghcr.io/', 'ghcr.io/any/thing:1', true],
    ['ghcr.io/', 'any/thing:1', false],
    ['ghcr.io', 'ghcr.io/any/thing:1', false],
    ['docker.io/', 'busybox:1', true],
    ['docker.io/', 'org/tool:1', false],
    ['registry.example.com:5000/org/tool', 'registry.example.com:5000/org/tool:1', true],
    ['registry.example.com/org/tool', 'registry.example.com:5000/org/tool:1', false],
    ['GHCR.io/org/', 'ghcr.io/org/tool:1', true],
    ['*', 'org/tool:1', false],
    ['', 'org/tool:1', false],
  ])('%j and %s: %s', (pattern, text, expected) => {
    const image = parseExtensionImage(text);
    expect(image && permits([pattern], image)).toBe(expected);
  });

  test('an empty list allows nothing', () => {
    const image = parseExtensionImage('org/tool:1');
    expect(image && permits([], image)).toBe(false);
  });
});

function never(): never {
  throw new Error('not reached');
}
