import { expect, test } from 'vitest';
import { deletion } from '../../src/plan/blast-radius.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { dueLoss } from '../../src/plan/unplanned-loss.ts';

const AT = '2026-01-01T00:00:00.000Z';
const LOSS = { items: [deletion('1.33.4')], snapshot: 'before-generation-1' };
let generation = 0;

function entry(path: string, rest: Partial<HistoryEntry> = {}): HistoryEntry {
  generation += 1;
  return { generation, at: AT, by: { how: 'set' }, changes: path === '' ? [] : [{ path, after: 'x' }], ...rest };
}

const version = (rest?: Partial<HistoryEntry>) => entry('kubernetes.version', rest);

test.each<[string, HistoryEntry[], number | undefined, boolean]>([
  ['an empty history', [], undefined, false],
  ['only other changes', [entry('images.namespace')], undefined, false],
  ['a version that was set', [version(), entry('images.namespace'), entry('state')], 0, false],
  ['a version that a plan covered', [version({ loss: LOSS }), entry('state')], 0, true],
  ['a plan for later', [version({ loss: { ...LOSS, items: [`${deletion('1.33.4')} when it next starts`] } })], 0, true],
  ['a loss of other data', [version({ loss: { ...LOSS, items: [deletion('1.30.0')] } })], 0, false],
  ['a cluster that was enabled again', [version({ loss: LOSS }), entry('kubernetes.enabled')], 1, false],
  ['restored data', [version({ loss: LOSS }), entry('', { by: { how: 'restore' } })], 1, false],
  [
    'a write that was not made',
    [version(), version({ loss: LOSS, outcome: { result: 'not applied', at: AT } })],
    0,
    false,
  ],
])('of %s', (_name, entries, cause, isRecorded) => {
  expect(dueLoss(entries, '1.33.4')).toEqual({ ...(cause === undefined ? {} : { cause: entries[cause] }), isRecorded });
});
