import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LiveRoom, MachineSpec, MachineStatus } from '../../src/drivers/driver.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { assumeObserved } from '../../src/plan/assumed.ts';
import { goalOf, machineSpec, type Observed } from '../../src/plan/backend.ts';
import type { Change } from '../../src/plan/change.ts';
import { consequencesOf } from '../../src/plan/consequences.ts';
import { makePlan } from '../../src/plan/plan.ts';
import { restartReasons } from '../../src/plan/restart-reasons.ts';
import { isRuntimeChange } from '../../src/plan/runtime-changes.ts';
import { isFutile, nextMachineStep } from '../../src/reconcile/step.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { runs } from '../helpers/rounds.ts';
import { settingsWith } from '../reconcile/worlds.ts';
import { requestFor, TARGET, type Values } from './planning.ts';

const MEMORY = 'virtualMachine.memoryInGB';
const CPUS = 'virtualMachine.numberCPUs';
const DISK = 'experimental.virtualMachine.diskSize';
const GIB = 2 ** 30;
const LIVE: Values = { [MEMORY]: 4, [CPUS]: 2, [DISK]: '100GiB' };
const ROOM: LiveRoom = {
  memoryGiB: { least: 2, most: 8 },
  cpus: { least: 2, most: 4 },
  diskBytes: { least: 100 * GIB, most: 2 ** 44 },
};

/** A machine that is on, with nothing in it. */
function machineWith(spec: MachineSpec, room?: LiveRoom): Observed {
  return {
    machine: { state: 'on', spec, ...(room ? { room } : {}) },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: { state: 'absent' },
  };
}

function planFor(live: Values, wanted: Values, observed: Observed) {
  const { plan } = makePlan({
    request: requestFor(wanted),
    live: settingsWith(live),
    ...DEFAULT_BLOCKS,
    power: 'started',
    locks: {},
    driver: SIMULATED_INFO,
    observed,
    target: TARGET,
    generation: 1,
  });
  return plan;
}

function costsOf(wanted: Values, room: LiveRoom | undefined = ROOM, running: Values = LIVE) {
  const { changes } = planFor(LIVE, wanted, machineWith(machineSpec(settingsWith(running), DEFAULT_BLOCKS), room));
  return ofSettings(changes).map(({ severity, reason }) => [severity, reason]);
}

/** Nothing runs in these machines, which every plan reports as well. */
function ofSettings(changes: readonly Change[]): Change[] {
  return changes.filter((change) => !isRuntimeChange(change));
}

test('every plan warns about what the machine lacks', () => {
  const observed = machineWith(machineSpec(settingsWith(LIVE), DEFAULT_BLOCKS), ROOM);
  expect(planFor(LIVE, {}, observed).warnings).toEqual([]);
  const lacking = { ...observed, machine: { ...observed.machine, flaw: 'its disk is small' } as MachineStatus };
  expect(planFor(LIVE, {}, lacking).warnings).toEqual(['The machine is only partly configured: its disk is small.']);
});

test.each<[string, Values, string, RegExp]>([
  ['more memory', { [MEMORY]: 8 }, 'live', /^applied to the running machine$/],
  ['less memory', { [MEMORY]: 2 }, 'live', /^applied to the running machine$/],
  [
    'more memory than there is room for',
    { [MEMORY]: 9 },
    'restart',
    /^requires a restart of the machine; the live limits are 2 to 8$/,
  ],
  ['less memory than the guest can do with', { [MEMORY]: 1 }, 'restart', /the live limits are 2 to 8$/],
  ['more processors', { [CPUS]: 4 }, 'live', /^applied to the running machine$/],
  ['fewer processors', { [CPUS]: 1 }, 'restart', /the live limits are 2 to 4$/],
  ['a larger disk', { [DISK]: '101GiB' }, 'live', /^applied to the running machine$/],
  ['a disk larger than can be', { [DISK]: '20TiB' }, 'restart', /^requires a restart of the machine$/],
])('a running machine with room: %s', (_what, wanted, severity, reason) => {
  expect(costsOf(wanted)).toEqual([[severity, expect.stringMatching(reason)]]);
});

test('a machine without information about its room needs a restart for each', () => {
  const room: LiveRoom = {};
  expect(costsOf({ [MEMORY]: 5, [CPUS]: 3, [DISK]: '101GiB' }, room).map(([severity]) => severity)).toEqual([
    'restart',
    'restart',
    'restart',
  ]);
});

test('a change with room waits for the restart that another change needs', () => {
  expect(costsOf({ [MEMORY]: 5, [CPUS]: 1 })).toEqual([
    ['live', 'applied to the machine, which restarts anyway'],
    ['restart', expect.stringContaining('requires a restart')],
  ]);
});

test('a disk larger than desired is enough: no restart would shrink it', () => {
  const larger = { ...LIVE, [DISK]: '200GiB' };
  expect(costsOf({ [DISK]: '150GiB' }, ROOM, larger)).toEqual([
    ['none', 'the disk is already larger, and cannot shrink'],
  ]);
  const observed = machineWith(machineSpec(settingsWith(larger), DEFAULT_BLOCKS), ROOM);
  const settings = settingsWith(LIVE);
  expect(
    nextMachineStep(
      consequencesOf(
        goalOf({ settings, ...DEFAULT_BLOCKS, power: 'started' }, SIMULATED_INFO),
        observed,
        SIMULATED_INFO,
      ),
    ),
  ).toBeUndefined();
  expect(restartReasons(settings, observed, SIMULATED_INFO, settings)).toEqual({});
  const plan = planFor(LIVE, {}, observed);
  expect([ofSettings(plan.changes), plan.pendingRestart]).toEqual([[], []]);
});

const sizes = fc.record({
  [MEMORY]: fc.integer({ min: 1, max: 9 }),
  [CPUS]: fc.integer({ min: 1, max: 6 }),
  [DISK]: fc.integer({ min: 100, max: 110 }).map((gib) => `${gib}GiB`),
});
const bounds = (most: number) =>
  fc
    .tuple(fc.nat({ max: most }), fc.nat({ max: most }))
    .map(([a, b]) => ({ least: Math.min(a, b), most: Math.max(a, b) }));
const rooms: fc.Arbitrary<LiveRoom | undefined> = fc.option(
  fc.record(
    {
      memoryGiB: bounds(10),
      cpus: bounds(7),
      diskBytes: bounds(12).map(({ least, most }) => ({ least: (least + 99) * GIB, most: (most + 99) * GIB })),
    },
    { requiredKeys: [] },
  ),
  { nil: undefined },
);

test('the loop does what a plan says', () => {
  fc.assert(
    fc.property(sizes, sizes, sizes, rooms, fc.boolean(), (running, live, wanted, room, unseen) => {
      const spec = machineSpec(settingsWith(running), DEFAULT_BLOCKS);
      const seen = machineWith(spec, room);
      const observed = unseen
        ? assumeObserved({
            seen,
            last: { settings: settingsWith(live), ...DEFAULT_BLOCKS },
            driver: SIMULATED_INFO,
            reason: 'nobody looked',
          })
        : seen;
      const { summary, ...plan } = planFor(live, wanted, observed);
      const changes = ofSettings(plan.changes);
      const severities = changes.map(({ severity }) => severity);
      const desired = settingsWith({ ...live, ...wanted });
      const goal = goalOf({ settings: desired, ...DEFAULT_BLOCKS, power: 'started' }, SIMULATED_INFO);
      const step = nextMachineStep(consequencesOf(goal, seen, SIMULATED_INFO));
      const reasons = restartReasons(desired, observed, SIMULATED_INFO, desired);
      // A difference from the settings in force is a change; a difference from the running application is work, and was pending before.
      const pending = planFor(live, {}, observed).pendingRestart.length > 0;
      if (severities.includes('restart')) expect(step).toEqual({ do: 'stop' });
      if (severities.includes('live')) expect(step).toBeDefined();
      if (step?.do === 'stop') expect(pending || summary.severity === 'restart').toBe(true);
      if (step?.do === 'adjust') expect(severities).not.toContain('restart');
      expect(Object.keys(reasons).length > 0).toBe(step?.do === 'stop');
      for (const { path, severity } of changes) expect(path in reasons).toBe(severity === 'restart');
      // A start in progress is canceled when its result would have to be stopped again, and its room is not known yet.
      const starting = { part: 'machine', step: { do: 'start', spec } } as const;
      const blank = nextMachineStep(consequencesOf(goal, machineWith(spec), SIMULATED_INFO));
      expect(isFutile(starting, goal, SIMULATED_INFO)).toBe(blank?.do === 'stop');
    }),
    { numRuns: runs(300) },
  );
});
