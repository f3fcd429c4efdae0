import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { clusterAfter, engineAfter, type Model, machineAfter } from '../../src/drivers/machines/simulated/model.ts';
import { goalOf } from '../../src/plan/backend.ts';
import { consequencesOf } from '../../src/plan/consequences.ts';
import { isReady, nextStep, type Step, stepName } from '../../src/reconcile/step.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { runs } from '../helpers/rounds.ts';
import { modelArbitrary, powerArbitrary, runningModel, seenOf, settingsArbitrary, settingsWith } from './worlds.ts';

const NO_CLUSTER = settingsWith({ 'kubernetes.enabled': false });

/** Performs a step on a model; like the driver, refuses what no machine could do. */
function after(model: Model, step: Step): Model {
  switch (step.part) {
    case 'machine':
      return machineAfter(model, step.step);
    case 'engine':
      return engineAfter(model, step.engine, step.step, { images: 0, containers: 0 });
    case 'cluster': {
      if (step.step.do !== 'start') return clusterAfter(model, step.step, 0);
      const installed = 'installedVersion' in model.cluster ? model.cluster.installedVersion : '1.33.4';
      const version = step.step.spec.version || installed;
      return clusterAfter(model, { do: 'start', spec: { ...step.step.spec, version } }, 0);
    }
  }
}

/** Every step until nothing is left to do, with its engine if it has one. */
async function way(model: Model, settings: Settings, power: 'started' | 'stopped', info = SIMULATED_INFO) {
  const goal = goalOf({ settings, ...DEFAULT_BLOCKS, power }, info);
  const names: string[] = [];
  const models = [model];
  for (let world = model; names.length < 30; models.push(world)) {
    const step = nextStep(consequencesOf(goal, await seenOf(world), info));
    if (!step) break;
    names.push(step.part === 'engine' ? `${step.engine} ${step.step.do}` : stepName(step));
    world = after(world, step);
  }
  const last = models.at(-1) ?? model;
  return { names, models, ready: isReady(goal, await seenOf(last)), last };
}

describe('the steps from one state to another', () => {
  test('from nothing, everything starts in order', async () => {
    const start = { ...runningModel(NO_CLUSTER), machine: { state: 'absent' as const } };
    start.engines.moby.process = { state: 'stopped' };
    expect((await way(start, settingsWith(), 'started')).names).toEqual([
      'machine start',
      'moby start',
      'cluster start',
    ]);
  });

  test('a stop goes in reverse order', async () => {
    const { names } = await way(runningModel(settingsWith()), settingsWith(), 'stopped');
    expect(names).toEqual(['cluster stop', 'moby stop', 'machine stop']);
  });

  test('a running backend in its desired state needs no step', async () => {
    expect((await way(runningModel(settingsWith()), settingsWith(), 'started')).names).toEqual([]);
  });

  test.each<[string, Settings, string[]]>([
    [
      'another engine',
      settingsWith({ 'containerEngine.name': 'containerd' }),
      ['cluster stop', 'moby stop', 'containerd start', 'cluster start'],
    ],
    ['another port of the cluster', settingsWith({ 'kubernetes.port': 6444 }), ['cluster stop', 'cluster start']],
    ['no cluster', NO_CLUSTER, ['cluster stop']],
    [
      'a lower cluster version',
      settingsWith({ 'kubernetes.version': '1.30.2' }),
      ['cluster stop', 'cluster reset', 'cluster start'],
    ],
    [
      'more processors',
      settingsWith({ 'virtualMachine.numberCPUs': 4 }),
      ['cluster stop', 'moby stop', 'machine stop', 'machine start', 'moby start', 'cluster start'],
    ],
    [
      'an option that the driver takes while running',
      settingsWith({ 'experimental.virtualMachine.sshPortForwarder': false }),
      ['machine adjust'],
    ],
    ['a setting that nothing depends on', settingsWith({ 'application.debug': true }), []],
    ['allowed images, while the list is off', settingsWith({ 'containerEngine.allowedImages.patterns': ['a/*'] }), []],
    [
      'the moby store',
      settingsWith({ 'containerEngine.mobyStorageDriver': 'snapshotter' }),
      ['cluster stop', 'moby stop', 'moby start', 'cluster start'],
    ],
  ])('%s', async (_what, desired, expected) => {
    expect((await way(runningModel(settingsWith()), desired, 'started')).names).toEqual(expected);
  });

  test('a changed list of allowed images is applied to the running engine', async () => {
    const allowed = { 'kubernetes.enabled': false, 'containerEngine.allowedImages.enabled': true } as const;
    const desired = settingsWith({ ...allowed, 'containerEngine.allowedImages.patterns': ['a/*'] });
    expect((await way(runningModel(settingsWith(allowed)), desired, 'started')).names).toEqual(['moby adjust']);
  });

  test('a setting that the driver does not enforce restarts nothing', async () => {
    const support = { ...SIMULATED_INFO.support, 'virtualMachine.numberCPUs': { level: 'stored' as const } };
    const info = { ...SIMULATED_INFO, support };
    const desired = settingsWith({ 'virtualMachine.numberCPUs': 4 });
    expect((await way(runningModel(settingsWith()), desired, 'started', info)).names).toEqual([]);
  });

  test('an unresponsive engine is restarted, below its cluster', async () => {
    const model = runningModel(settingsWith());
    model.engines.moby.process = { state: 'hung' };
    const { names } = await way(model, settingsWith(), 'started');
    expect(names).toEqual(['cluster stop', 'moby stop', 'moby start', 'cluster start']);
  });

  test('a broken machine is stopped at once', async () => {
    const model = { ...runningModel(NO_CLUSTER), machine: { state: 'broken' as const, reason: 'X', message: 'x' } };
    const { names } = await way(model, NO_CLUSTER, 'started');
    expect(names).toEqual(['machine stop', 'machine start', 'moby start']);
  });

  test('a cluster on the other engine is stopped with it', async () => {
    const model = runningModel(settingsWith({ 'containerEngine.name': 'containerd' }));
    const { names } = await way(model, NO_CLUSTER, 'started');
    expect(names).toEqual(['cluster stop', 'containerd stop', 'moby start']);
  });
});

test('every state leads to every desired state in a few steps, never with two engines or a cluster without one', async () => {
  await fc.assert(
    fc.asyncProperty(modelArbitrary, settingsArbitrary, powerArbitrary, async (model, settings, power) => {
      // The transitions refuse what no machine could do, so a wrong order fails here.
      const { names, models, ready, last } = await way(model, settings, power);
      expect(ready).toBe(true);
      expect(names.length).toBeLessThanOrEqual(8);
      expect(Object.values(last.engines).filter((engine) => engine.process.state !== 'stopped')).toHaveLength(
        power === 'started' ? 1 : 0,
      );
      const engines = models.map(
        (world) => Object.values(world.engines).filter((engine) => engine.process.state !== 'stopped').length,
      );
      // Two only if it started with two, and then never again.
      for (const [index, count] of engines.entries()) {
        if (index > 0 && count > 1) expect(count).toBeLessThanOrEqual(engines[index - 1] ?? 0);
      }
    }),
    { numRuns: runs(1500) },
  );
});
