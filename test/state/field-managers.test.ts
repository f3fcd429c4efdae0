import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Author, HistoryEntry, RecordedChange } from '../../src/plan/history.ts';
import {
  type FieldManager,
  fieldName,
  isRemoved,
  managersIn,
  managersLine,
  managersOf,
} from '../../src/state/field-managers.ts';
import { MOST_ENTRIES, openHistory, readHistory, readManagedHistory } from '../../src/state/history-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const AT = '2026-01-01T00:00:00.000Z';

function entry(generation: number, changes: RecordedChange[], more: Partial<HistoryEntry> = {}): HistoryEntry {
  return { generation, at: AT, by: { how: 'set' }, changes, ...more };
}

/** `path` or `path[key]` with the generation that manages it. */
function shown(managers: readonly FieldManager[]): Record<string, number> {
  return Object.fromEntries(managers.map((each) => [fieldName(each), each.generation]));
}

const memory = (after: number): RecordedChange => ({ path: 'virtualMachine.memoryInGB', before: 1, after });
const muted = (key: string, after?: boolean): RecordedChange => ({
  path: 'diagnostics.mutedChecks',
  key,
  ...(after === undefined ? { before: true } : { after }),
});

test('the last write that took effect manages a field, each entry of a map by itself', () => {
  const source = { file: '/team.yaml', line: 4 };
  const by: Author = { how: 'apply', files: [{ path: '/team.yaml', sha256: 'a'.repeat(64) }] };
  const managers = managersOf([
    entry(1, [memory(2), muted('A', true), muted('B', true)]),
    entry(2, [{ ...memory(3), source }], { by }),
    entry(3, [memory(4)], { outcome: { result: 'not applied', at: AT } }),
    entry(4, [muted('B')]),
  ]);
  expect(managers).toEqual([
    { path: 'diagnostics.mutedChecks', key: 'A', after: true, by: { how: 'set' }, generation: 1, at: AT },
    { path: 'virtualMachine.memoryInGB', after: 3, source, by, generation: 2, at: AT },
    { path: 'diagnostics.mutedChecks', key: 'B', by: { how: 'set' }, generation: 4, at: AT },
  ]);
});

test('after a factory reset nothing is managed; other resets change no settings', () => {
  const after = (how: Author['how']) =>
    shown(managersOf([entry(1, [memory(2)]), entry(2, [], { by: { how } }), entry(3, [muted('A', true)])]));
  expect(after('factory reset')).toEqual({ '["diagnostics.mutedChecks","A"]': 3 });
  expect(after('reset')).toEqual({ '["virtualMachine.memoryInGB"]': 1, '["diagnostics.mutedChecks","A"]': 3 });
});

const changeArbitrary: fc.Arbitrary<RecordedChange> = fc.oneof(
  fc.record({ path: fc.constantFrom('a', 'b.c', 'state'), after: fc.integer() }),
  fc
    .record({ path: fc.constantFrom('m', 'n'), key: fc.constantFrom('x', 'y', '__proto__', ''), gone: fc.boolean() })
    .map(({ path, key, gone }) => ({ path, key, ...(gone ? { before: 1 } : { after: 1 }) })),
);
const entriesArbitrary = fc
  .array(
    fc.record({
      changes: fc.uniqueArray(changeArbitrary, { selector: fieldName, maxLength: 4 }),
      how: fc.constantFrom('set', 'apply', 'api', 'policy', 'reset', 'factory reset'),
      applied: fc.boolean(),
    }),
    { maxLength: 30 },
  )
  .map((writes) =>
    writes.map(({ changes, how, applied }, index) =>
      entry(index + 1, changes, {
        by: { how: how as Author['how'] },
        ...(applied ? {} : { outcome: { result: 'not applied' as const, at: AT } }),
      }),
    ),
  );

test('wherever the history is cut, the managers stay the same, except of entries of maps that are gone', () => {
  fc.assert(
    fc.property(entriesArbitrary, fc.array(fc.nat(30), { maxLength: 4 }), (entries, cuts) => {
      let kept = entries;
      let before: FieldManager[] = [];
      for (const cut of cuts) {
        const line = managersLine(managersOf(kept.slice(0, cut), before));
        before = line === '' ? [] : managersIn(JSON.parse(line));
        kept = kept.slice(cut);
      }
      const isThere = (manager: FieldManager) => !isRemoved(manager);
      const whole = managersOf(entries).filter(isThere);
      expect(managersOf(kept, before).filter(isThere)).toEqual(whole);
    }),
  );
});

test('the line is bounded, and what is damaged in it is left out', () => {
  const huge = (generation: number): FieldManager => ({
    path: `p${generation}`,
    by: { how: 'apply', files: [{ path: 'x'.repeat(300_000), sha256: '' }] },
    generation,
    at: AT,
  });
  const line = managersLine([1, 2, 3, 4, 5].map(huge));
  expect(line.length).toBeLessThan(1_100_000);
  expect(shown(managersIn(JSON.parse(line)))).toEqual({ '["p3"]': 3, '["p4"]': 4, '["p5"]': 5 });
  const good = { generation: 1, at: AT, by: { how: 'set' }, fields: [{ path: 'a' }, {}, 7] };
  expect(managersIn({ managers: [good, {}, null, { ...good, by: 3 }] })).toHaveLength(1);
  expect(managersIn({ managers: 'x' })).toEqual([]);
});

test('a history that drops entries while it runs still knows who set what, also when it is opened again', async () => {
  const path = `${temporaryDirectory()}/history.jsonl`;
  const history = await openHistory(path, 0, () => 0);
  const by: Author = { how: 'api', token: 'ci-bot' };
  await history.add(entry(1, [memory(2), muted('A', true)], { by }));
  const last = MOST_ENTRIES * 2;
  for (let generation = 2; generation <= last; generation += 1) {
    await history.add(entry(generation, [{ path: 'images.namespace', after: String(generation) }]));
  }
  const expected = {
    '["virtualMachine.memoryInGB"]': 1,
    '["diagnostics.mutedChecks","A"]': 1,
    '["images.namespace"]': last,
  };
  const { entries, managers } = await readManagedHistory(path);
  expect(entries[0]?.generation).toBeGreaterThan(1);
  expect(shown(managers)).toEqual(expected);
  expect(managers[0]?.by).toEqual(by);
  await openHistory(path, last, () => 0);
  expect(shown((await readManagedHistory(path)).managers)).toEqual(expected);
  expect(await readHistory(path)).toEqual(entries);
});
