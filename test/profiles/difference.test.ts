import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareSettings, type Side } from '../../profiles/document/comparison.ts';
import type { JsonObject } from '../../src/json.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { anyPayloadArbitrary } from '../helpers/settings-arbitrary.ts';

const side = (settings: JsonObject, rest: Partial<Side> = {}): Side => ({
  settings: { version: 19, ...settings },
  locked: [],
  whole: false,
  locks: false,
  ...rest,
});
const live = (settings: JsonObject, rest: Partial<Side> = {}) => side(settings, { whole: true, locks: true, ...rest });

describe('within one part', () => {
  const images = { images: { showAll: true } };
  const locked = side(images, { locks: true, locked: ['images.showAll'] });
  const lock = (before: boolean) => [{ path: 'images.showAll', before, after: !before }];

  test('a setting of the other part differs in being locked', () => {
    const free = live(images);
    expect(compareSettings(free, locked, 'locked')).toEqual({ values: [], locks: lock(false) });
    expect(compareSettings(locked, free, 'defaults')).toEqual({ values: [], locks: lock(true) });
    const other = live({ images: { showAll: false } });
    expect(compareSettings(other, locked, 'locked')).toEqual({ values: [], locks: lock(false) });
  });

  test('what the other side lacks, or has in an unknown part, is absent there', () => {
    const absent = [{ path: 'images.showAll', sensitive: false, after: true }];
    expect(compareSettings(side({}, { locks: true }), locked, 'locked')).toEqual({ values: absent, locks: [] });
    expect(compareSettings(side(images), locked, 'locked')).toEqual({ values: absent, locks: [] });
    const all = live(images, { locked: ['images.showAll'] });
    expect(compareSettings(all, locked, 'locked')).toEqual({ values: [], locks: [] });
  });
});

describe('values', () => {
  test('what only one side mentions is absent from the other', () => {
    expect(compareSettings(side({ images: { showAll: true } }), side({ kubernetes: { port: 6444 } })).values).toEqual([
      { path: 'kubernetes.port', sensitive: false, after: 6444 },
      { path: 'images.showAll', sensitive: false, before: true },
    ]);
  });

  test('different spellings of one value are equal', () => {
    const size = (diskSize: string) => side({ experimental: { virtualMachine: { diskSize } } });
    expect(compareSettings(size('100GiB'), size('100 gib')).values).toEqual([]);
  });

  test('entries of maps are compared one by one', () => {
    const wsl = (integrations: JsonObject, whole = false) => side({ WSL: { integrations } }, { whole });
    expect(compareSettings(wsl({ A: true, B: true }), wsl({ A: false, C: true })).values).toEqual([
      { path: 'WSL.integrations', key: 'A', sensitive: false, before: true, after: false },
      { path: 'WSL.integrations', key: 'B', sensitive: false, before: true },
      { path: 'WSL.integrations', key: 'C', sensitive: false, after: true },
    ]);
    expect(compareSettings(wsl({}), side({})).values).toEqual([
      { path: 'WSL.integrations', sensitive: false, before: {} },
    ]);
    expect(compareSettings(wsl({ A: null }), wsl({ B: true }, true)).values).toEqual([]);
    expect(compareSettings(wsl({ A: null }), wsl({ A: true }, true)).values).toHaveLength(1);
  });

  test('against a complete side only mentioned settings count', () => {
    const file = side({ kubernetes: { port: 6443 }, WSL: { integrations: { A: true } } });
    const all = live({ kubernetes: { port: 6443, enabled: true }, WSL: { integrations: { A: true, B: true } } });
    expect(compareSettings(file, all).values).toEqual([]);
    expect(compareSettings(all, file).values).toEqual([]);
  });

  test('secrets are masked', () => {
    const proxy = (password: string) => side({ experimental: { virtualMachine: { proxy: { password } } } });
    expect(compareSettings(proxy('a'), proxy('b')).values).toMatchObject([{ sensitive: true }]);
  });

  test('nothing differs from itself, and the sides can be swapped', () => {
    fc.assert(
      fc.property(anyPayloadArbitrary(), anyPayloadArbitrary(), (a, b) => {
        expect(compareSettings(side(a), side(a)).values).toEqual([]);
        const there = compareSettings(side(a), side(b)).values;
        const back = compareSettings(side(b), side(a)).values;
        const turned = back.map(({ before, after, ...rest }) => ({
          ...rest,
          ...(after === undefined ? {} : { before: after }),
          ...(before === undefined ? {} : { after: before }),
        }));
        expect(new Set(there.map((each) => JSON.stringify(each, sorted(each))))).toEqual(
          new Set(turned.map((each) => JSON.stringify(each, sorted(each)))),
        );
        for (const { path } of FIELDS) {
          const same = JSON.stringify(leafAt(a, path)) === JSON.stringify(leafAt(b, path));
          if (same) expect(there.map((each) => each.path)).not.toContain(path);
        }
      }),
    );
  });
});

describe('locks', () => {
  const settings = { kubernetes: { port: 6443, enabled: true } };

  test('are compared when both sides say something about them', () => {
    const locked = side(settings, { locked: ['kubernetes.port'], locks: true });
    const open = side(settings, { locks: true });
    expect(compareSettings(locked, open).locks).toEqual([{ path: 'kubernetes.port', before: true, after: false }]);
    expect(compareSettings(locked, side(settings)).locks).toEqual([]);
    expect(compareSettings(side({}, { locks: true }), live({}, { locked: ['kubernetes.port'] })).locks).toEqual([]);
  });

  test('one part is what is locked, or the rest', () => {
    const a = side(settings, { locked: ['kubernetes.port'], locks: true });
    const b = side({ kubernetes: { port: 6444, enabled: false } }, { locked: ['kubernetes.port'], locks: true });
    expect(compareSettings(a, b, 'locked').values.map(({ path }) => path)).toEqual(['kubernetes.port']);
    expect(compareSettings(a, b, 'defaults').values.map(({ path }) => path)).toEqual(['kubernetes.enabled']);
    expect(compareSettings(a, side({}), 'locked')).toEqual({
      values: [{ path: 'kubernetes.port', sensitive: false, before: 6443 }],
      locks: [],
    });
  });
});

function sorted(value: object): string[] {
  return [...Object.keys(value), 'before', 'after'].sort();
}
