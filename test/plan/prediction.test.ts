import { expect, test } from 'vitest';
import { planText } from '../../cli/views/plan-text.ts';
import type { HistoryEntry, RecordedOutcome } from '../../src/plan/history.ts';
import { type Measurement, measurementOf, predictionOf } from '../../src/plan/prediction.ts';
import { planWith } from '../helpers/plans.ts';

const AT = '2026-11-03T12:00:00.000Z';
const RESTART = ['engine start', 'engine stop'];

const measured = (ms: number, steps = 'engine start, engine stop', at = AT): Measurement => ({ steps, ms, at });

/** What an entry with these phases measures. */
function taken(phases: RecordedOutcome['phases'], result: RecordedOutcome['result'] = 'converged') {
  const entry: Pick<HistoryEntry, 'outcome'> = { outcome: { result, at: AT, ...(phases ? { phases } : {}) } };
  return measurementOf(entry);
}

test('without an earlier change with the same steps there is no figure', () => {
  expect(predictionOf(RESTART, [])).toBeUndefined();
  expect(predictionOf(RESTART, [measured(5000, 'engine start')])).toBeUndefined();
  expect(predictionOf([], [measured(0, '')])).toBeUndefined();
});

test('the figure is the median of those with the same steps, in whatever order', () => {
  const all = [measured(9000), measured(1, 'engine start', 'before'), measured(5000), measured(6000)];
  expect(predictionOf(RESTART, all)).toEqual({ ms: 6000, times: 3, since: AT });
  expect(predictionOf(RESTART.toReversed(), all.slice(0, 3))).toEqual({ ms: 7000, times: 2, since: AT });
});

test('an entry counts when everything in it succeeded', () => {
  const stop = { name: 'engine stop', ms: 1000, outcome: 'done' as const };
  const start = { name: 'engine start', ms: 4999.6, outcome: 'done' as const };
  expect(taken([stop, start])).toEqual(measured(6000));
  expect(taken([stop, start], 'failed')).toBeUndefined();
  expect(taken([stop, start], 'superseded')).toBeUndefined();
  expect(taken([stop, { ...start, outcome: 'failed' }, start])).toBeUndefined();
  expect(taken([stop, { name: 'engine start' }])).toBeUndefined();
  expect(taken([])).toBeUndefined();
  expect(measurementOf({})).toBeUndefined();
});

test.each([
  [{ ms: 6234, times: 2 }, 'About 6 s, as the same steps took here twice since 2026-11-03.'],
  [{ ms: 143, times: 1 }, 'About 140 ms, as the same steps took here once, on 2026-11-03.'],
  [{ ms: 148_000, times: 7 }, 'About 2 min 30 s, as the same steps took here 7 times since 2026-11-03.'],
  [{ ms: 121_000, times: 3 }, 'About 2 min, as the same steps took here 3 times since 2026-11-03.'],
])('%j reads %s', (prediction, text) => {
  const plan = { ...planWith([]), prediction: { ...prediction, since: AT } };
  const paint = { bold: String, good: String, bad: String, warn: String, dim: String } as never;
  expect(planText(plan, paint).trimEnd().split('\n').at(-1)).toBe(text);
});
