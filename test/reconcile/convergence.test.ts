import { describe, expect, test } from 'vitest';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import { IDLE_MS } from '../../src/reconcile/controllers.ts';
import { start } from './loop.ts';
import { runningModel, settingsWith } from './worlds.ts';

describe('convergence', () => {
  test('starts everything, reports each step, and then rests', async () => {
    const { controllers, clock, states, steps } = start({ settings: settingsWith() });
    expect(controllers.status()).toMatchObject({ converged: false, backendState: 'STARTING', observedGeneration: 0 });
    expect(controllers.status().conditions.map(({ status }) => status)).toEqual([
      'Unknown',
      'Unknown',
      'Unknown',
      'Unknown',
    ]);
    const status = await controllers.quiesce(new AbortController().signal);
    expect(status).toMatchObject({ converged: true, backendState: 'STARTED', observedGeneration: 1 });
    expect(status.cluster).toMatchObject({ state: 'running', installedVersion: '1.33.4', spec: { version: '1.33.4' } });
    expect(steps()).toEqual(['machine start done', 'moby start done', 'cluster start done']);
    expect(states).toEqual(['STARTING', 'STARTED']);
    expect(status.counters).toEqual({ steps: 3, restarts: 0, resets: 0, failures: 0 });
    await clock.advance(10 * IDLE_MS);
    expect(steps()).toHaveLength(3);
  });

  test('without a cluster the ready state is DISABLED', async () => {
    const { controllers } = start();
    expect((await controllers.quiesce(new AbortController().signal)).backendState).toBe('DISABLED');
  });

  test('a driver without a cluster is ready even though the default settings enable one', async () => {
    const { controllers, condition } = start({ settings: settingsWith(), info: { hasCluster: false } });
    const status = await controllers.quiesce(new AbortController().signal);
    expect(status).toMatchObject({ converged: true, backendState: 'DISABLED', cluster: { state: 'unsupported' } });
    expect(condition('ClusterReady')).toMatchObject({ status: 'False', reason: 'NotSupportedByDriver' });
  });

  test('the installed cluster version is kept where the settings leave it open', async () => {
    const settings = settingsWith();
    const model = runningModel(settings, '1.30.2');
    const { controllers } = start({ settings, model: { ...model, cluster: { ...stopped('1.30.2') } } });
    const status = await controllers.quiesce(new AbortController().signal);
    expect(status.cluster).toMatchObject({ state: 'running', installedVersion: '1.30.2' });
  });

  test('waits for a cluster that does not answer yet', async () => {
    const settings = settingsWith();
    const { controllers, clock, condition, states } = start({ settings, clusterReadyMs: 2_500 });
    await clock.advance(2_000);
    expect(condition('ClusterReady')).toMatchObject({ reason: 'NotAnsweringYet' });
    expect(condition('Converged')).toMatchObject({ reason: 'WaitingForCluster' });
    await clock.advance(1_000);
    expect(controllers.status().converged).toBe(true);
    expect(states).toEqual(['STARTING', 'STARTED']);
  });

  test('adopts a running machine after the service was killed', async () => {
    const settings = settingsWith();
    const { controllers, steps } = start({ settings, model: runningModel(settings) });
    expect(await controllers.quiesce(new AbortController().signal)).toMatchObject({ backendState: 'STARTED' });
    expect(steps()).toEqual([]);
  });
});

describe('drift', () => {
  test('an engine that died is restarted', async () => {
    const { clock, controllers, simulation, states } = start();
    await clock.turn();
    simulation.meddle((model) => {
      model.engines.moby.process = { state: 'stopped' };
      return model;
    });
    await clock.advance(IDLE_MS);
    expect(controllers.status()).toMatchObject({ converged: true, backendState: 'DISABLED' });
    expect(states).toEqual(['STARTING', 'DISABLED', 'STARTING', 'DISABLED']);
  });
});

function stopped(installedVersion: string): Model['cluster'] {
  return { state: 'stopped', installedVersion, workloads: [] };
}
