import fc from 'fast-check';
import { expect, test } from 'vitest';
import { obsoleteSafetySnapshots } from '../../../src/features/snapshots/retention.ts';
import type { HistoryEntry } from '../../../src/plan/history.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const at = (ms: number) => new Date(START + ms).toISOString();

type Result = 'converged' | 'returned' | 'failed';
/** A change `ms` after the start; with its name, it destroyed data and has a safety snapshot. */
type Deed = [ms: number, result: Result, name?: string | undefined, how?: 'return'];

function obsolete(
  deeds: readonly Deed[],
  now: number,
  { dropped = 0, since }: { dropped?: number; since?: string } = {},
) {
  const snapshots = deeds.flatMap(([ms, , name], index) =>
    name === undefined ? [] : [{ name, created: at(ms), covers: index + 1 }],
  );
  const entries = deeds.map(
    ([ms, result, , how]): HistoryEntry => ({
      generation: deeds.findIndex(([other]) => other === ms) + 1,
      at: at(ms),
      by: { how: how ?? 'set' },
      changes: [],
      outcome: { result, at: at(ms + 1) },
    }),
  );
  const facts = {
    snapshots,
    entries: entries.slice(dropped),
    now: START + now,
    ...(since === undefined ? {} : { since }),
  };
  return obsoleteSafetySnapshots(facts).map(({ snapshot }) => snapshot.name);
}

/** Attempts that fail and are undone, a minute each. */
const attempts = (from: number, names: string): Deed[] =>
  [...names].flatMap((name, index): Deed[] => [
    [from + 2 * index * MINUTE, 'returned', name],
    [from + (2 * index + 1) * MINUTE, 'converged', undefined, 'return'],
  ]);
/** Changes that succeed, one a day. */
const days = (names: string): Deed[] => [...names].map((name, index) => [index * DAY, 'converged', name]);
/** Changes that destroy nothing. */
const harmless = (from: number, count: number): Deed[] =>
  Array.from({ length: count }, (_, index) => [from + index + 1, 'converged']);

test.each<[string, Deed[], number, { dropped?: number; since?: string } | undefined, string]>([
  ['nothing', [], DAY, undefined, ''],
  ['one', days('a'), 100 * DAY, undefined, ''],
  ['four failing attempts: the first and the last stay', attempts(0, 'abcd'), DAY, undefined, 'bc'],
  ['a hundred attempts', attempts(0, 'a'.padEnd(100, 'b')), DAY, undefined, 'b'.repeat(98)],
  [
    'attempts after a day of work: both beginnings stay',
    [...days('a'), ...attempts(DAY, 'bcde')],
    2 * DAY,
    undefined,
    'cd',
  ],
  [
    'set, set back, and again, within the hour',
    [
      [0, 'failed', 'a'],
      [1, 'converged'],
      [2, 'failed', 'b'],
      [3, 'converged'],
      [4, 'failed', 'c'],
    ],
    DAY,
    undefined,
    'b',
  ],
  ['five in five days: the oldest stays for its week', days('abcde'), 5 * DAY, undefined, 'b'],
  ['five, a week later', days('abcde'), 12 * DAY, undefined, 'ab'],
  [
    'four, of which none succeeded, a year later',
    attempts(0, 'abcd').filter(([, result]) => result !== 'converged'),
    365 * DAY,
    undefined,
    'bc',
  ],
  ['600 harmless changes after it', [...days('a'), ...harmless(0, 600)], DAY, { dropped: 350, since: at(-1) }, ''],
  ['and a week', [...days('a'), ...harmless(0, 600)], 8 * DAY, { dropped: 350, since: at(-1) }, 'a'],
  ['from before a factory reset', [...days('a'), ...harmless(0, 600)], 8 * DAY, { dropped: 350, since: at(1) }, ''],
])('%s', (_name, deeds, now, options, gone) => {
  expect(obsolete(deeds, now, options).join('')).toBe(gone);
});

test('the oldest copy outlives whatever is done within its week, and what stays is bounded', () => {
  const deed = fc.tuple(
    fc.integer({ min: 1, max: 300 }),
    fc.constantFrom<Result>('converged', 'returned', 'failed'),
    fc.boolean(),
  );
  fc.assert(
    fc.property(fc.array(deed, { minLength: 1, maxLength: 60 }), (steps) => {
      let now = 0;
      let kept: Deed[] = [];
      const deeds: Deed[] = [];
      const gone = new Set<string>();
      for (const [minutes, result, covered] of steps) {
        now += minutes * MINUTE;
        if (now >= 7 * DAY) break;
        deeds.push([now, result, ...(covered ? [String(deeds.length)] : [])] as Deed);
        const left = deeds.map(
          ([ms, outcome, name]) => [ms, outcome, ...(name === undefined || gone.has(name) ? [] : [name])] as Deed,
        );
        for (const name of obsolete(left, now)) gone.add(name);
        kept = deeds.filter(([, , name]) => name !== undefined && !gone.has(name));
      }
      expect(kept[0]?.[2]).toBe(deeds.find(([, , name]) => name !== undefined)?.[2]);
      expect(kept.length).toBeLessThanOrEqual(5);
    }),
  );
});
