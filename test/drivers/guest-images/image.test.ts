import { describe, expect, test } from 'vitest';
import { digestOf, imageToBoot, manifestText, parseManifest } from '../../../src/drivers/guest-images/image.ts';

describe('a manifest', () => {
  const file = { name: 'vmlinuz', bytes: 1, sha256: 'a'.repeat(64) };
  const whole = {
    format: 1,
    name: 'debian-12',
    architecture: 'x86_64',
    created: '2026-11-01T12:00:00.000Z',
    rootBytes: 1,
    files: { kernel: file, initrd: file, disk: file },
  };
  test('lists the features of an image, and has the old text when there are none', () => {
    const text = manifestText({ ...whole, format: 1, features: [] });
    expect(text).not.toContain('features');
    expect(text).toBe(manifestText({ ...whole, format: 1 }));
    expect(parseManifest(text)).toEqual(whole);
    const special = manifestText({ ...whole, format: 1, features: ['9p'] });
    expect(parseManifest(special)).toEqual({ ...whole, features: ['9p'] });
    expect(digestOf(special)).not.toBe(digestOf(text));
  });

  test('records what the image was built from, and has the old text when that is unknown', () => {
    const packages = [{ name: 'docker.io', version: '26.1.5+dfsg1-9+b1', sha256: 'b'.repeat(64) }];
    const source = { suite: 'trixie', kernel: 'cloud', recipe: 'c'.repeat(64), packages };
    const text = manifestText({ ...whole, format: 1, source });
    expect(parseManifest(text)).toEqual({ ...whole, source });
    expect(manifestText({ ...whole, format: 1 })).not.toContain('source');
    const reordered = { packages, recipe: source.recipe, kernel: 'cloud', suite: 'trixie' };
    expect(manifestText({ ...whole, format: 1, source: reordered })).toBe(text);
  });

  test.each<[string, unknown, string]>([
    [
      'a source without packages',
      { ...whole, source: { suite: 'a', kernel: 'b', recipe: 'c'.repeat(64) } },
      'its source',
    ],
    [
      'a package without a checksum',
      {
        ...whole,
        source: { suite: 'a', kernel: 'b', recipe: 'c'.repeat(64), packages: [{ name: 'aa', version: '1' }] },
      },
      'its source',
    ],
    ['another format', { ...whole, format: 2 }, 'its format is 2'],
    ['features that are no words', { ...whole, features: [7] }, 'its features'],
    ['features that are no list', { ...whole, features: '9p' }, 'its features'],
    ['no object', [], 'it is not a JSON object'],
    ['a name that leads elsewhere', { ...whole, name: '../x' }, 'its name'],
    [
      'a file that leads elsewhere',
      { ...whole, files: { ...whole.files, disk: { ...file, name: '../disk' } } },
      'it does not name',
    ],
    [
      'a file with the name of a manifest',
      { ...whole, files: { ...whole.files, disk: { ...file, name: 'manifest.json' } } },
      'it does not name',
    ],
    ['a short sum', { ...whole, files: { ...whole.files, disk: { ...file, sha256: 'aa' } } }, 'it does not name'],
    ['no files', { ...whole, files: {} }, 'it does not name'],
    ['no size', { ...whole, rootBytes: 0 }, 'it has no size'],
  ])('is refused with %s', (_, value, problem) => {
    const read = parseManifest(JSON.stringify(value));
    expect('problem' in read && read.problem).toContain(problem);
  });
});

describe('the image that a machine boots', () => {
  const architecture = 'x86_64';
  const [plain, newer] = [
    { architecture, digest: 'plain' },
    { architecture, digest: 'newer', features: [] },
  ];
  const special = { architecture, digest: 'special', features: ['9p'] };
  const foreign = { architecture: 'aarch64', digest: 'foreign', features: ['9p'] };
  const gone = 'gone';

  test.each([
    ['the newest for a new machine', [newer, plain], {}, newer],
    ['the one it booted last', [newer, plain], { current: 'plain' }, plain],
    ['the selected one', [newer, plain], { selected: 'newer', current: 'plain' }, newer],
    ['the last one when the selected one is gone', [newer, plain], { selected: gone, current: 'plain' }, plain],
    ['the newest when both are gone', [newer, plain], { selected: gone, current: gone }, newer],
    ['one with a required feature', [newer, special], { selected: 'newer', feature: '9p' }, special],
    ['the selected one when none has the feature', [newer, plain], { selected: 'plain', feature: '9p' }, plain],
    ['never one of another architecture', [foreign, plain], { selected: 'foreign', feature: '9p' }, plain],
    ['none when there are only those', [foreign], { current: 'foreign' }, undefined],
    ['none when there is none', [], { selected: gone, feature: '9p' }, undefined],
  ])('is %s', (_, known, choice, expected) => {
    expect(imageToBoot(known, { architecture, selected: undefined, current: undefined, ...choice })).toBe(expected);
  });
});
