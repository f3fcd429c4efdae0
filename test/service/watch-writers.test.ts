import { expect, test } from 'vitest';
import type { Author } from '../../src/plan/history.ts';
import type { KeptProfile } from '../../src/plan/kept.ts';
import { createWriters } from '../../src/service/watch/writers.ts';

const TEAM = { name: 'team', generation: 5 } as KeptProfile;
const writer = (by: Author, generation = 7) => ({ by, generation, at: '2026-11-24T15:00:00Z' });

test.each<[string, Author, boolean]>([
  ['set', { how: 'set' }, true],
  ['an apply of another profile', { how: 'apply', profile: 'other' }, true],
  ['an apply of no profile', { how: 'apply' }, true],
  ['a heal', { how: 'heal', profile: 'team' }, false],
  ['an apply of the kept profile', { how: 'apply', profile: 'team' }, false],
])('the last writer of a field besides its kept profile: %s', (_, by, isNoted) => {
  const writers = createWriters(() => [TEAM]);
  writers.note(['a'], writer(by));
  expect(writers.last('a')).toEqual(isNoted ? writer(by) : undefined);
  expect(writers.last('b')).toBeUndefined();
});

test('an apply of the kept profile ends what others wrote before, a heal does not', () => {
  const writers = createWriters(() => [TEAM]);
  writers.note(['a', 'b'], writer({ how: 'set' }));
  writers.note(['a'], writer({ how: 'heal', profile: 'team' }));
  expect(writers.last('a')?.by.how).toBe('set');
  writers.note(['a'], writer({ how: 'apply', profile: 'team' }));
  expect(writers.last('a')).toBeUndefined();
  expect(writers.last('b')?.by.how).toBe('set');
});

test.each<[string, Author, number, boolean]>([
  ['goes back over the apply', { how: 'rollback', to: 4 }, 7, true],
  ['returns over it', { how: 'return', to: 4 }, 7, true],
  ['goes back to after it', { how: 'rollback', to: 6 }, 7, false],
  ['came before it', { how: 'rollback', to: 3 }, 4, false],
  ['goes back to nothing', { how: 'set' }, 7, false],
])('a write undoes the last apply of a profile: %s', (_, by, generation, undoes) => {
  const writers = createWriters(() => [TEAM]);
  writers.note([], writer(by, generation));
  expect(writers.undoing(TEAM)).toEqual(undoes ? writer(by, generation) : undefined);
  // Applied again since.
  expect(writers.undoing({ ...TEAM, generation: 8 })).toBeUndefined();
});
