import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import { assumeObserved } from '../../src/plan/assumed.ts';
import { goalOf } from '../../src/plan/backend.ts';
import { consequencesOf } from '../../src/plan/consequences.ts';
import { makePlan } from '../../src/plan/plan.ts';
import { isReady, nextStep } from '../../src/reconcile/step.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { runs } from '../helpers/rounds.ts';
import {
  modelArbitrary,
  powerArbitrary,
  runningModel,
  seenOf,
  settingsArbitrary,
  settingsWith,
} from '../reconcile/worlds.ts';
import { planFor, requestFor, TARGET } from './planning.ts';

const LIVE = settingsWith();

/** What a plan reports that requests nothing new. */
async function saidOf(model: Model, power: 'started' | 'stopped' = 'started') {
  const { changes, summary, blastRadius } = await planFor({}, requestFor({}), { model, power });
  const lines = changes.map(({ path, before, after, severity }) => `${path}: ${before} → ${after} (${severity})`);
  return { lines, text: summary.text, lost: blastRadius.map(({ what }) => what) };
}

test('what should run and does not is a change, and interrupts nothing', async () => {
  expect(await saidOf(emptyModel())).toEqual({
    lines: [
      'machine: stopped → started (live)',
      'engine: stopped → started (live)',
      'cluster: stopped → started (live)',
    ],
    text: '3 changes, starts the machine, engine and cluster, nothing is lost',
    lost: [],
  });
});

test('what runs as it should is no change', async () => {
  expect((await saidOf(runningModel(LIVE))).lines).toEqual([]);
});

test('a single part that stopped is named alone', async () => {
  const model = runningModel(LIVE);
  const cluster = { ...model.cluster, state: 'stopped' } as Model['cluster'];
  expect((await saidOf({ ...model, cluster })).lines).toEqual(['cluster: stopped → started (live)']);
});

test('a switch that was interrupted names the engine that is stopped, and its containers', async () => {
  const model = runningModel(settingsWith({ 'containerEngine.name': 'containerd' }));
  const containerd = { ...model.engines.containerd, containers: [{ name: 'web', running: true }] };
  const said = await saidOf({ ...model, engines: { ...model.engines, containerd } });
  expect(said.lines[0]).toBe('engine: containerd → moby (restart)');
  expect(said.lost).toContain('stops 1 container: web');
});

test('what runs and should not is stopped', async () => {
  const { lines, text } = await saidOf(runningModel(LIVE), 'stopped');
  expect(lines).toEqual([
    'machine: started → stopped (restart)',
    'engine: started → stopped (restart)',
    'cluster: started → stopped (restart)',
  ]);
  expect(text).toBe('3 changes, stops the machine, engine and cluster, no data is deleted');
});

test('a cluster that runs and should not is stopped alone', async () => {
  const { changes } = await planFor({ 'kubernetes.enabled': false }, requestFor({}), { model: runningModel(LIVE) });
  expect(changes).toMatchObject([{ path: 'cluster', before: 'started', after: 'stopped', severity: 'restart' }]);
});

test('without an observation, nothing is said to be stopped', async () => {
  const observed = assumeObserved({
    seen: undefined,
    last: { settings: LIVE, ...DEFAULT_BLOCKS },
    driver: SIMULATED_INFO,
    reason: 'nobody looked',
  });
  expect((await planFor({}, requestFor({}), { observed })).changes).toEqual([]);
});

test('an empty plan is exactly one for which the loop has nothing to do', async () => {
  await fc.assert(
    fc.asyncProperty(modelArbitrary, settingsArbitrary, powerArbitrary, async (model, live, power) => {
      const observed = await seenOf(model);
      const { plan } = makePlan({
        ...{
          request: requestFor({}),
          live,
          ...DEFAULT_BLOCKS,
          power,
          observed,
          locks: {},
          driver: SIMULATED_INFO,
        },
        ...{ target: TARGET, generation: 1 },
      });
      const goal = goalOf({ settings: live, ...DEFAULT_BLOCKS, power }, SIMULATED_INFO);
      const settled = nextStep(consequencesOf(goal, observed, SIMULATED_INFO)) === undefined && isReady(goal, observed);
      expect(plan.changes.length === 0).toBe(settled);
      if (plan.changes.length === 0) expect(plan.blastRadius).toEqual([]);
    }),
    { numRuns: runs(500) },
  );
});
