import { expect, test, vi } from 'vitest';
import { ioError } from '../../src/os/io-error.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import type { LoopStatus } from '../../src/reconcile/contract.ts';
import { serviceHistory } from '../../src/service/history.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { settingsWith } from '../reconcile/worlds.ts';

const LIVE = { settings: settingsWith(), ...DEFAULT_BLOCKS, power: 'started' as const, generation: 1 };
const NEXT = { ...LIVE, settings: settingsWith({ 'images.namespace': 'web' }), generation: 2 };
const STOPPED = { ...LIVE, power: 'stopped' as const, generation: 2 };

/** A history in memory, and the loop that reports to it. */
function scene(newest?: HistoryEntry, full?: string, rest: Parameters<typeof serviceHistory>[2] = {}) {
  const lines: string[] = [];
  let report: (status: LoopStatus) => void = () => undefined;
  const history = serviceHistory(
    {
      last: newest?.generation ?? 0,
      onOldest: () => undefined,
      entries: async () => [],
      async add({ generation, changes }) {
        const isSecond = lines.length > 0;
        if (full && isSecond) throw ioError('write', '/history.jsonl', Object.assign(new Error(full), { code: full }));
        lines.push(`${generation}: ${changes.map(({ path }) => path)}`);
      },
      close: async (generation, { result, reason }) =>
        void lines.push(`${generation} ${result}${reason === undefined ? '' : `: ${reason}`}`),
      lose: async () => undefined,
    },
    { write: vi.fn() },
    { ...(newest ? { newest, left: [newest] } : {}), ...rest },
  );
  history.follow({
    onChange(listener) {
      report = listener;
      return () => {
        report = () => undefined;
      };
    },
  });
  const loop = (generation: number, rest: Partial<LoopStatus> = {}) =>
    report({
      generation,
      observedGeneration: generation,
      converged: true,
      backendState: 'DISABLED',
      conditions: [],
      phases: [],
      ...rest,
    } as unknown as LoopStatus);
  return { history, lines, loop };
}

const FORWARD = { path: 'portForwards', key: 'default/web:80', after: 8080 };

test('an apply is over when the backend and its steps are, in either order', async () => {
  for (const stepsFirst of [true, false]) {
    const { history, lines, loop } = scene();
    await history.writing(LIVE, NEXT, { how: 'apply' }, { announced: [FORWARD] });
    if (stepsFirst) history.finished(2);
    else loop(2);
    expect(lines).toEqual(['2: images.namespace,portForwards']);
    if (stepsFirst) loop(2);
    else history.finished(2);
    expect(lines.at(-1)).toBe('2 converged');
  }
});

test('a step that fails is the reason, unless the backend failed', async () => {
  const { history, lines, loop } = scene();
  await history.writing(LIVE, NEXT, { how: 'apply' }, { announced: [FORWARD] });
  history.finished(2, new Error('the port is in use'));
  loop(2);
  expect(lines.at(-1)).toBe('2 failed: the port is in use');
  await history.writing(NEXT, { ...LIVE, generation: 3 }, { how: 'apply' }, { announced: [FORWARD] });
  history.finished(3, new Error('the port is in use'));
  loop(3, {
    converged: false,
    backendState: 'ERROR',
    conditions: [{ concern: 'attention', message: 'no disk' }] as never,
  });
  expect(lines.at(-1)).toBe('3 failed: no disk');
});

test('a forward supersedes nothing and waits for no backend; a later write of the same apply supersedes nothing', async () => {
  const { history, lines, loop } = scene();
  await history.writing(LIVE, NEXT, { how: 'apply' }, { announced: [] });
  await history.writing(NEXT, { ...NEXT, generation: 3 }, { how: 'api' }, { announced: [FORWARD] });
  history.finished(3);
  expect(lines).toEqual(['2: images.namespace', '3: portForwards', '3 converged']);
  loop(3);
  await history.writing(NEXT, { ...LIVE, generation: 4 }, { how: 'apply', continues: 2 });
  loop(4);
  history.finished(2);
  expect(lines.slice(3)).toEqual(['4: images.namespace', '4 converged', '2 converged']);
  await history.writing(LIVE, { ...NEXT, generation: 5 }, { how: 'apply' }, { announced: [FORWARD] });
  await history.writing(NEXT, { ...LIVE, generation: 6 }, { how: 'set' });
  history.tookEffect(6);
  expect(lines.slice(-2)).toEqual(['6: images.namespace', '5 superseded']);
});

test('what changes took is known from the last service and from this one', async () => {
  const { history, loop } = scene();
  await history.writing(LIVE, NEXT, { how: 'set' });
  loop(2, { phases: [{ name: 'engine start', startedAt: '', ms: 40, outcome: 'done' }] });
  expect(history.measured()).toMatchObject([{ steps: 'engine start', ms: 40 }]);
});

test('after an apply that launched the service stopped, the power of before is what it changed', async () => {
  const changes: unknown[] = [];
  const file = {
    last: 0,
    onOldest: () => undefined,
    entries: async () => [],
    add: async (entry: Omit<HistoryEntry, 'outcome'>) => void changes.push(entry.changes),
    close: async () => undefined,
    lose: async () => undefined,
  };
  const history = serviceHistory(file, { write: vi.fn() }, { launchedFrom: 'started' });
  const launched = { ...LIVE, power: 'stopped' as const };
  await history.writing(launched, { ...NEXT, power: 'started' }, { how: 'apply' });
  await history.writing({ ...NEXT, power: 'started' }, { ...NEXT, power: 'stopped', generation: 3 }, { how: 'apply' });
  expect(changes).toEqual([
    [
      { path: 'images.namespace', before: 'default', after: 'web' },
      { path: 'service', before: 'stopped', after: 'started' },
    ],
    [{ path: 'state', before: 'started', after: 'stopped' }],
  ]);
});

test('a write that fails after its entry supersedes nothing; one without room for an entry does', async () => {
  const { history, lines, loop } = scene();
  await history.writing(LIVE, NEXT, { how: 'apply' });
  await history.writing(NEXT, { ...LIVE, generation: 3 }, { how: 'set' });
  await history.notApplied(3);
  loop(2);
  expect(lines.slice(2)).toEqual(['3 not applied', '2 converged']);
  const reused = scene();
  await reused.history.writing(LIVE, NEXT, { how: 'set' });
  await reused.history.writing(NEXT, { ...LIVE, generation: 3 }, { how: 'set' });
  await reused.history.notApplied(3);
  // The number is given again, to another attempt at the same state.
  await reused.history.writing(NEXT, { ...NEXT, generation: 3 }, { how: 'power' });
  reused.history.tookEffect(3);
  expect(reused.lines.at(-1)).toBe('3 not applied');
  const full = scene(undefined, 'ENOSPC');
  await full.history.writing(LIVE, NEXT, { how: 'apply' });
  await full.history.writing(NEXT, { ...NEXT, power: 'stopped', generation: 3 }, { how: 'power' });
  full.history.tookEffect(3);
  expect(full.lines).toEqual(['2: images.namespace', '2 superseded']);
});

test('what a service left unfinished is finished by the next one, and nothing once the loop is no longer believed', async () => {
  const entry: HistoryEntry = {
    generation: 2,
    at: 'then',
    by: { how: 'set' },
    changes: [{ path: 'images.namespace' }],
  };
  const { history, lines, loop } = scene(entry);
  history.continueLeft('started');
  loop(3);
  await history.writing(LIVE, { ...NEXT, generation: 4 }, { how: 'set' });
  history.unfollow();
  loop(4);
  expect(lines).toEqual(['2 converged', '4: images.namespace']);
  const destroyed = scene({ ...entry, loss: { items: ['it'], uncovered: 'no room' } });
  destroyed.history.continueLeft('started');
  destroyed.loop(3);
  expect(destroyed.lines).toEqual([]);
});

test('a write that leaves an earlier one as it is supersedes nothing; a stop supersedes what was not reached', async () => {
  const { history, lines, loop } = scene();
  await history.writing(LIVE, NEXT, { how: 'apply' });
  const other = { ...NEXT, settings: settingsWith({ 'images.namespace': 'web', 'kubernetes.enabled': false }) };
  await history.writing(NEXT, { ...other, generation: 3 }, { how: 'set' });
  history.tookEffect(3);
  loop(2, { converged: false });
  expect(lines).toHaveLength(2);
  loop(3);
  expect(lines.slice(2)).toEqual(['2 converged', '3 converged']);
  await history.writing(other, { ...LIVE, generation: 4 }, { how: 'apply' });
  await history.writing(LIVE, { ...STOPPED, generation: 5 }, { how: 'power' });
  history.tookEffect(5);
  loop(5);
  expect(lines.slice(4)).toEqual([expect.stringContaining('4: '), '5: state', '4 superseded', '5 converged']);
});

test('a change of a desktop that is off is stored, and never converged', async () => {
  const off = { ...NEXT, power: 'stopped' as const };
  for (const [idle, before, after] of [
    [false, STOPPED, off],
    [true, STOPPED, off],
    [true, LIVE, NEXT],
  ] as const) {
    const { history, lines, loop } = scene(undefined, undefined, { idle });
    await history.writing(before, after, { how: 'apply' });
    history.tookEffect(2);
    loop(2);
    expect(lines).toEqual(['2: images.namespace', '2 stored']);
  }
});

test('what was stopped before it was in force is continued by the start that follows, unless it was changed again', async () => {
  const left = [
    { generation: 2, at: 'then', by: { how: 'apply' as const }, changes: [{ path: 'images.namespace' }] },
    { generation: 3, at: 'then', by: { how: 'set' as const }, changes: [{ path: 'kubernetes.enabled' }] },
  ];
  const { history, lines, loop } = scene(left[1], undefined, { left, launchedFrom: 'started' });
  history.continueLeft('stopped');
  loop(4);
  expect(lines).toEqual([]);
  const launched = { ...NEXT, power: 'stopped' as const, generation: 4 };
  const kubernetes = settingsWith({ 'images.namespace': 'web', 'kubernetes.enabled': false });
  await history.writing(launched, { ...NEXT, settings: kubernetes, generation: 5 }, { how: 'apply' });
  history.tookEffect(5);
  expect(lines).toEqual(['5: kubernetes.enabled,service', '3 superseded']);
  loop(5);
  expect(lines.slice(2)).toEqual(['2 converged', '5 converged']);
});

test('a start alone supersedes nothing, is superseded by the stop, and neither needs room for its entry', async () => {
  const { history, lines, loop } = scene();
  await history.writing(LIVE, NEXT, { how: 'set' });
  await history.writing(NEXT, { ...NEXT, generation: 3 }, { how: 'start' }, { isStart: true });
  history.tookEffect(3);
  expect(lines).toEqual(['2: images.namespace', '3: service']);
  const ended = history.stopping(4, { how: 'power' });
  await ended({ result: 'converged' });
  expect(lines.slice(2)).toEqual(['4: service', '3 superseded', '4 converged']);
  loop(3);
  expect(lines.slice(5)).toEqual(['2 converged']);
  for (const failure of ['ENOSPC', 'EACCES']) {
    const full = scene(undefined, failure);
    await full.history.writing(LIVE, NEXT, { how: 'set' });
    await full.history.writing(NEXT, { ...NEXT, generation: 3 }, { how: 'start' }, { isStart: true });
    await full.history.stopping(4, { how: 'power' })({ result: 'converged' });
    expect(full.lines).toEqual(['2: images.namespace']);
  }
});

test('a write that fails after its entry is marked', async () => {
  const { history, lines, loop } = scene();
  await history.writing(LIVE, NEXT, { how: 'set' });
  await history.notApplied(2);
  loop(2);
  expect(lines).toEqual(['2: images.namespace', '2 not applied']);
});

test('forwards that a killed service announced are unfinished, unless the entry has a result', () => {
  const entry: HistoryEntry = { generation: 7, at: 'then', by: { how: 'api' }, changes: [FORWARD] };
  const { history, lines } = scene(entry);
  expect(history.unfinished).toMatchObject({ generation: 7, forwards: [FORWARD] });
  history.finished(7);
  expect(lines).toEqual(['7 converged']);
  expect(scene({ ...entry, outcome: { result: 'failed', at: 'then' } }).history.unfinished).toBeUndefined();
  expect(scene({ ...entry, changes: [{ path: 'state' }] }).history.unfinished).toBeUndefined();
});

test('a change that cannot be recorded is refused; on a full disk a stop and a reset still work', async () => {
  let failure: string | undefined;
  const added: Omit<HistoryEntry, 'outcome'>[] = [];
  const write = vi.fn();
  const history = serviceHistory(
    {
      last: 0,
      onOldest: () => undefined,
      entries: async () => [],
      async add(entry) {
        if (failure) throw ioError('write', '/history.jsonl', Object.assign(new Error(failure), { code: failure }));
        added.push(entry);
      },
      close: async () => undefined,
      lose: async () => undefined,
    },
    { write },
  );
  failure = 'ENOSPC';
  await expect(history.writing(LIVE, NEXT, { how: 'set' })).rejects.toMatchObject({ code: 'ERR_IO' });
  await history.writing(LIVE, STOPPED, { how: 'power' });
  expect(write).toHaveBeenCalledWith('warn', expect.stringContaining('the disk is full'), { generation: 2 });
  const RESET = { ...LIVE, generation: 2 };
  const items = ['deletes it'];
  await history.writing(LIVE, RESET, { how: 'reset' }, { loss: { items, uncovered: 'no room' } });
  await expect(
    history.writing(LIVE, RESET, { how: 'reset' }, { loss: { items, snapshot: 'x' } }),
  ).rejects.toMatchObject({ code: 'ERR_IO' });
  failure = 'EACCES';
  await expect(history.writing(LIVE, STOPPED, { how: 'power' })).rejects.toMatchObject({ code: 'ERR_IO' });
  failure = undefined;
  await history.writing(LIVE, NEXT, { how: 'set' });
  expect(added).toMatchObject([{ generation: 2, by: { how: 'set' } }]);
});
