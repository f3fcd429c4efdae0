import { expect, test } from 'vitest';
import { type Check, type Finding, failed, passed } from '../../../src/features/diagnostics/check.ts';
import { createBackground } from '../../../src/features/diagnostics/diagnostics.ts';
import { createRunner } from '../../../src/features/diagnostics/runner.ts';
import { createVirtualClock } from '../../reconcile/virtual-clock.ts';
import { checkContext } from './context.ts';

const EPOCH = '1970-01-01T00:00:00.000Z';

function check(id: string, run: Check['run'], more: Partial<Check> = {}): Check {
  return { id, category: 'Testing', applies: () => true, run, ...more };
}

function stage(checks: Check[], mutedChecks: Record<string, boolean> = {}) {
  const clock = createVirtualClock();
  const logged: Record<string, unknown>[] = [];
  const documentation = 'file:///docs/diagnostics.md';
  const context = checkContext({ documentation, settings: { diagnostics: { mutedChecks } } });
  const log = (_level: 'warn', _message: string, values: Record<string, unknown>) => logged.push(values);
  return { clock, logged, context, runner: createRunner({ checks, context, clock, log, limitMs: 1_000 }) };
}

test('nothing is known before the first complete run, which sets the date of the report', async () => {
  const { runner, clock } = stage([check('A', async () => [passed('fine')])]);
  expect(runner.report()).toEqual({ last_update: EPOCH, checks: [] });
  const report = await runner.runAll();
  expect(report).toEqual({
    last_update: new Date(clock.now()).toISOString(),
    checks: [
      {
        description: 'fine',
        passed: true,
        fixes: [],
        id: 'A',
        category: 'Testing',
        mute: false,
        documentation: 'file:///docs/diagnostics.md#a',
      },
    ],
  });
  expect(runner.report()).toEqual(report);
});

test('checks run concurrently', async () => {
  let waiting = 0;
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const both = async () => {
    waiting += 1;
    if (waiting === 2) open();
    await gate;
    return [passed('met the other')];
  };
  const { runner } = stage([check('A', both), check('B', both)]);
  expect((await runner.runAll()).checks).toHaveLength(2);
});

test('a check that throws keeps its last result, and is logged', async () => {
  const answers: (() => Finding[])[] = [
    () => [failed('broken')],
    () => {
      throw new Error('no idea');
    },
  ];
  const { runner, logged } = stage([
    check('A', async () => answers.shift()?.() ?? []),
    check('NEVER', () => {
      throw new Error('at once');
    }),
  ]);
  await runner.runAll();
  expect((await runner.runAll()).checks).toMatchObject([{ id: 'A', description: 'broken' }]);
  expect(logged.map(({ check: id }) => String(id)).sort()).toEqual(['A', 'NEVER', 'NEVER']);
});

test('a check that hangs is given up and aborted, and delays no one', async () => {
  let ended: unknown;
  const hanging = check('HANGS', (_context, signal) => {
    signal.addEventListener('abort', () => {
      ended = true;
    });
    return new Promise(() => undefined);
  });
  const { runner, clock, logged } = stage([hanging, check('B', async () => [passed('fine')])]);
  const report = runner.runAll();
  await clock.advance(1_000);
  expect((await report).checks).toMatchObject([{ id: 'B' }]);
  expect(ended).toBe(true);
  expect(logged).toMatchObject([{ check: 'HANGS', error: { code: 'ERR_DEADLINE' } }]);
});

test('only checks that apply now are run and listed', async () => {
  let applies = true;
  let runs = 0;
  const counted = async () => {
    runs += 1;
    return [passed('fine')];
  };
  const { runner } = stage([check('A', counted, { applies: () => applies })]);
  expect((await runner.runAll()).checks).toHaveLength(1);
  applies = false;
  expect(runner.report().checks).toEqual([]);
  expect((await runner.runAll()).checks).toEqual([]);
  expect(runs).toBe(1);
  expect(runner.ids('Testing')).toEqual(['A']);
});

test('a finding replaces the previous one, and a pass removes it', async () => {
  const answers: Finding[][] = [[passed('one', 'x'), failed('two', [{ description: 'mend' }], 'y')], []];
  const { runner } = stage([check('A', async () => answers.shift() ?? [])]);
  expect((await runner.runAll()).checks.map(({ id }) => id)).toEqual(['A:x', 'A:y']);
  expect((await runner.runAll()).checks).toEqual([]);
});

test.each([
  [{}, ['A:x', 'A:y', 'AB']],
  [{ id: 'A' }, ['A:x', 'A:y']],
  [{ id: 'A:y' }, ['A:y']],
  [{ id: 'a' }, []],
  [{ category: 'Testing', id: 'AB' }, ['AB']],
  [{ category: 'Networking' }, []],
])('a filter %j', async (filter, ids) => {
  const { runner } = stage([
    check('A', async () => [passed('one', 'x'), passed('two', 'y')]),
    check('AB', async () => [passed('three')]),
  ]);
  await runner.runAll();
  expect(runner.report(filter).checks.map(({ id }) => id)).toEqual(ids);
});

test('a check can be muted entirely, or for one finding', async () => {
  const checks = [
    check('A', async () => [passed('one', 'x'), passed('two', 'y')]),
    check('B', async () => [passed('three', 'z')]),
    check('constructor', async () => [passed('four')]),
  ];
  const { runner } = stage(checks, { 'A:y': true, B: true, 'A:x': false });
  await runner.runAll();
  expect(
    runner
      .report()
      .checks.filter(({ mute }) => mute)
      .map(({ id }) => id),
  ).toEqual(['A:y', 'B:z']);
});

test('running a single check does not change the date of the report', async () => {
  let text = 'before';
  const { runner, clock } = stage([check('A', async () => [passed(text)]), check('B', async () => [passed(text)])]);
  const { last_update } = await runner.runAll();
  text = 'after';
  await clock.advance(5_000);
  await runner.rerun(({ id }) => id === 'A');
  expect(runner.report()).toMatchObject({
    last_update,
    checks: [
      { id: 'A', description: 'after' },
      { id: 'B', description: 'before' },
    ],
  });
});

test('callers during a run share the next run', async () => {
  const gates: (() => void)[] = [];
  const { runner } = stage([
    check('A', () => new Promise((resolve) => gates.push(() => resolve([passed(`run ${gates.length}`)])))),
  ]);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const first = runner.runAll();
  await turn();
  const [second, third] = [runner.runAll(), runner.runAll()];
  await turn();
  expect(gates).toHaveLength(1);
  gates[0]?.();
  expect((await first).checks[0]?.description).toBe('run 1');
  await turn();
  expect(gates).toHaveLength(2);
  gates[1]?.();
  expect((await second).checks).toEqual((await third).checks);
  expect(gates).toHaveLength(2);
});

test('an earlier run that ends later does not replace a newer result', async () => {
  const gates: ((text: string) => void)[] = [];
  const { runner } = stage([check('A', () => new Promise((resolve) => gates.push((text) => resolve([passed(text)]))))]);
  const older = runner.rerun(() => true);
  const newer = runner.rerun(() => true);
  gates[1]?.('newer');
  await newer;
  gates[0]?.('older');
  await older;
  expect(runner.report().checks[0]?.description).toBe('newer');
});

test('closing aborts running checks silently', async () => {
  const { runner, logged } = stage([check('A', () => new Promise(() => undefined))]);
  const report = runner.runAll();
  await new Promise((resolve) => setImmediate(resolve));
  await runner.close();
  expect(await report).toEqual({ last_update: EPOCH, checks: [] });
  expect(logged).toEqual([]);
});

test('background runs start a full interval after the last one ended, and never with 0', async () => {
  const clock = createVirtualClock();
  let interval = 5_000;
  let looks = 0;
  const background = createBackground({
    clock,
    interval: () => interval,
    look: async () => {
      looks += 1;
    },
  });
  await clock.advance(4_999);
  expect(looks).toBe(0);
  await clock.advance(1);
  expect(looks).toBe(1);
  await clock.advance(4_000);
  background.restart();
  await clock.advance(4_000);
  expect(looks).toBe(1);
  await clock.advance(1_000);
  expect(looks).toBe(2);
  interval = 0;
  background.restart();
  await clock.advance(60_000);
  expect(looks).toBe(2);
  expect(clock.sleepers()).toBe(0);
  interval = 1;
  background.restart();
  await clock.advance(999);
  expect(looks).toBe(2);
  await clock.advance(1);
  expect(looks).toBe(3);
  background.close();
  await clock.advance(60_000);
  expect(looks).toBe(3);
});
