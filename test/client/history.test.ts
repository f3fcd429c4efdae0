import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changesBetween, lastChange, rollbackRequest } from '../../src/client/history.ts';
import type { DesiredBackend } from '../../src/plan/backend.ts';
import { blocksAfter, differences, settingsAfter } from '../../src/plan/diff.ts';
import { type HistoryEntry, type RecordedChange, recordedChanges } from '../../src/plan/history.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { readBlocks } from '../../src/settings/blocks.ts';
import { powerArbitrary, settingsArbitrary, settingsWith } from '../reconcile/worlds.ts';

const AT = '2026-01-01T00:00:00.000Z';
const PASSWORD = 'experimental.virtualMachine.proxy.password';

const machineArbitrary = fc
  .record({
    mounts: fc.dictionary(
      fc.constantFrom('/a', '/b', '~/c'),
      fc.constantFrom('read-only' as const, 'writable' as const, 'none' as const),
    ),
    hostPorts: fc.array(fc.integer({ min: 1, max: 99 }), { maxLength: 3 }),
    pauseAfterMinutes: fc.integer({ min: 0, max: 60 }),
  })
  .map(
    (block) =>
      ({ ...DEFAULT_BLOCKS.machine, ...readBlocks({ machine: block }).blocks.machine }) as DesiredBackend['machine'],
  );

const stateArbitrary: fc.Arbitrary<DesiredBackend> = fc.record({
  settings: settingsArbitrary,
  machine: machineArbitrary,
  power: powerArbitrary,
});

/** One entry for each step from one state to the next; the first state has generation 0. */
function entriesOf(states: readonly DesiredBackend[]): HistoryEntry[] {
  return states.slice(1).map((state, index) => {
    const before = states[index] ?? state;
    return { generation: index + 1, at: AT, by: { how: 'set' }, changes: recordedChanges(before, state) };
  });
}

test('a rollback leads back to each earlier state', () => {
  fc.assert(
    fc.property(fc.array(stateArbitrary, { minLength: 2, maxLength: 5 }), fc.nat(), (states, pick) => {
      const to = pick % states.length;
      const now = states.at(-1);
      const wanted = states[to];
      if (!now || !wanted) throw new Error('no state');
      const { request, secrets } = rollbackRequest(entriesOf(states), to);
      expect(secrets).toEqual([]);
      const differing = differences(now, request);
      const settings = settingsAfter(now.settings, differing);
      const { machine } = blocksAfter(now, differing);
      const power = request.state === 'unmanaged' ? now.power : request.state;
      const left = recordedChanges(wanted, { settings, machine, power });
      // An empty version lets the service choose, so a chosen one satisfies it.
      expect(left.filter(({ path }) => path !== 'kubernetes.version')).toEqual([]);
    }),
  );
});

test('the net changes between two states are their differences', () => {
  fc.assert(
    fc.property(fc.array(stateArbitrary, { minLength: 3, maxLength: 5 }), (states) => {
      const [first] = states;
      const last = states.at(-1);
      if (!first || !last) throw new Error('no state');
      const sorted = (changes: readonly RecordedChange[]) =>
        changes.map(({ path, key, before, after }) => JSON.stringify([path, key, before, after])).sort();
      const net = changesBetween(entriesOf(states), 0, states.length - 1);
      expect(sorted(net)).toEqual(sorted(recordedChanges(first, last)));
    }),
  );
});

test('secrets are never recorded, and a rollback names those that it cannot bring back', () => {
  const state = (password: string, memory: number): DesiredBackend => ({
    settings: settingsWith({ [PASSWORD]: password, 'virtualMachine.memoryInGB': memory }),
    ...DEFAULT_BLOCKS,
    power: 'started',
  });
  const entries = entriesOf([state('', 2), state('one', 2), state('two', 3)]);
  expect(JSON.stringify(entries)).not.toMatch(/one|two/);
  expect(entries[1]?.changes).toEqual([
    { path: 'virtualMachine.memoryInGB', before: 2, after: 3 },
    { path: PASSWORD, before: { sensitive: true }, after: { sensitive: true } },
  ]);
  const { request, secrets } = rollbackRequest(entries, 1);
  expect(secrets).toEqual([PASSWORD]);
  expect(request.settings).toEqual({ version: 19, virtualMachine: { memoryInGB: 2 } });
  // Before the first one there was none, which can be had again.
  expect(rollbackRequest(entries, 0).secrets).toEqual([]);
});

test('an entry that never took effect is not undone', () => {
  const entry: HistoryEntry = {
    generation: 1,
    at: AT,
    by: { how: 'set' },
    changes: [{ path: 'virtualMachine.memoryInGB', before: 2, after: 3 }],
    outcome: { result: 'not applied', at: AT },
  };
  expect(rollbackRequest([entry], 0).request.settings).toEqual({ version: 19 });
  expect(changesBetween([entry], 0, 1)).toEqual([]);
});

test('the last change goes back to an entry that there is, and a rollback says what it would make again that failed', () => {
  const change = [{ path: 'images.namespace', before: 'a', after: 'b' }];
  const failed = { result: 'failed' as const, at: AT, reason: 'no room' };
  const entries: HistoryEntry[] = [
    { generation: 2, at: AT, by: { how: 'set' }, changes: change },
    { generation: 5, at: AT, by: { how: 'apply' }, changes: change, outcome: failed },
    { generation: 6, at: AT, by: { how: 'rollback', to: 2 }, changes: change },
  ];
  expect(lastChange(entries)).toMatchObject({ to: 5, change: { generation: 6 }, failedBefore: [{ generation: 5 }] });
  expect(lastChange(entries.slice(0, 2))).toMatchObject({ to: 2, change: { generation: 5 }, failedBefore: [] });
  expect(lastChange(entries.slice(0, 1))).toMatchObject({ to: 1 });
});
