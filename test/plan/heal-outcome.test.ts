import { expect, test } from 'vitest';
import { afterFailure, afterHeal } from '../../src/plan/heal-outcome.ts';
import type { FieldMemory } from '../../src/plan/healing.ts';

const NOW = 1_000_000;
const failed = (attempts: number) => ({ message: 'no', attempts, retryAt: 5 });

test.each<[string, FieldMemory | undefined, string | undefined, FieldMemory]>([
  ['nothing was known', undefined, '`set`', { since: NOW, rounds: { '`set`': 1 } }],
  ['another round', { since: 1, rounds: { '`set`': 2 } }, '`set`', { since: 1, rounds: { '`set`': 3 } }],
  [
    'another manager',
    { since: 1, rounds: { '`set`': 2 } },
    'the API',
    { since: 1, rounds: { '`set`': 2, 'the API': 1 } },
  ],
  [
    'a deferred change is no round',
    { since: 1, rounds: { '`set`': 2 } },
    undefined,
    { since: 1, rounds: { '`set`': 2 } },
  ],
  ['a failure is over', { since: 1, rounds: {}, failed: failed(2) }, undefined, { since: 1, rounds: {} }],
])('healed: %s', (_, field, against, memory) => {
  expect(afterHeal(field, NOW, against)).toEqual(memory);
});

test.each<[number, number]>([
  [0, 30_000],
  [1, 60_000],
  [6, 1_920_000],
  [7, 3_600_000],
  [500, 3_600_000],
])('after %i failures in a row the next pause is %i ms', (earlier, pause) => {
  const field = { since: 1, rounds: { '`set`': 1 }, ...(earlier === 0 ? {} : { failed: failed(earlier) }) };
  expect(afterFailure(field, NOW, 'why')).toEqual({
    ...{ since: 1, rounds: { '`set`': 1 } },
    failed: { message: 'why', attempts: earlier + 1, retryAt: NOW + pause },
  });
});

test('a field of which nothing was known fails for the first time', () => {
  expect(afterFailure(undefined, NOW, 'why')).toMatchObject({ since: NOW, failed: { attempts: 1 } });
});
