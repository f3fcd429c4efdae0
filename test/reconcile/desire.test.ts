import { describe, expect, test } from 'vitest';
import { failing, NO_CLUSTER, start } from './loop.ts';
import { runningModel, settingsWith } from './worlds.ts';

describe('a new desired state', () => {
  test('that only stores a setting never leaves the ready state', async () => {
    const { controllers, desire, states, clock, steps } = start();
    await clock.turn();
    const before = steps().length;
    desire({ settings: { ...NO_CLUSTER, application: { ...NO_CLUSTER.application, debug: true } } });
    expect(controllers.status()).toMatchObject({ backendState: 'DISABLED', converged: false, generation: 2 });
    await clock.turn();
    expect(controllers.status()).toMatchObject({ converged: true, observedGeneration: 2 });
    expect(states).toEqual(['STARTING', 'DISABLED']);
    expect(steps()).toHaveLength(before);
  });

  test('with only another number stays converged, and one that failed stays failed', async () => {
    const { controllers, states, clock, steps } = start();
    await clock.turn();
    const before = steps().length;
    controllers.renumber(2);
    expect(controllers.status()).toMatchObject({ converged: true, generation: 2, observedGeneration: 2 });
    const failed = start({ faults: failing({ 'machine start': 99 }, 'ERR_SETTING_UNSUPPORTED') });
    await failed.clock.advance(60_000);
    const tries = failed.steps().length;
    expect(failed.controllers.status().backendState).toBe('ERROR');
    failed.controllers.renumber(2);
    await failed.clock.advance(60_000);
    expect(failed.controllers.status()).toMatchObject({ backendState: 'ERROR', observedGeneration: 2 });
    expect(failed.steps()).toHaveLength(tries);
    expect(steps()).toHaveLength(before);
    expect(states).toEqual(['STARTING', 'DISABLED']);
  });

  test('that requires a restart leaves the ready state before the first step', async () => {
    const { controllers, desire, states, clock, steps } = start();
    await clock.turn();
    desire({ settings: settingsWith({ 'kubernetes.enabled': false, 'containerEngine.name': 'containerd' }) });
    expect(controllers.status()).toMatchObject({ backendState: 'STOPPING', converged: false });
    expect(steps()).toHaveLength(2);
    await clock.turn();
    expect(states).toEqual(['STARTING', 'DISABLED', 'STOPPING', 'STARTING', 'DISABLED']);
    expect(controllers.status().counters).toMatchObject({ restarts: 1, resets: 0 });
    expect(controllers.status().phases.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      'engine stop done',
      'engine start done',
    ]);
  });

  test('that is applied live never leaves the ready state', async () => {
    const allowed = { 'kubernetes.enabled': false, 'containerEngine.allowedImages.enabled': true } as const;
    const { desire, states, clock, steps, controllers } = start({ settings: settingsWith(allowed), latency: 10 });
    await clock.advance(100);
    desire({ settings: settingsWith({ ...allowed, 'containerEngine.allowedImages.patterns': ['a/*'] }) });
    await clock.advance(100);
    expect(states).toEqual(['STARTING', 'DISABLED']);
    expect(steps().at(-1)).toBe('moby adjust done');
    expect(controllers.status().counters.restarts).toBe(0);
  });

  test('that requires a restart during another change leaves the ready state at once', async () => {
    const allowed = { 'kubernetes.enabled': false, 'containerEngine.allowedImages.enabled': true } as const;
    const { desire, clock, controllers } = start({ settings: settingsWith(allowed), latency: 1_000 });
    await clock.advance(3_000);
    desire({ settings: settingsWith({ ...allowed, 'containerEngine.allowedImages.patterns': ['a/*'] }) });
    await clock.turn();
    desire({ settings: settingsWith({ ...allowed, 'containerEngine.name': 'containerd' }) });
    expect(controllers.status().backendState).toBe('STOPPING');
    await clock.advance(10_000);
    expect(controllers.status().converged).toBe(true);
  });

  test('of power off stops everything and stays off', async () => {
    const { desire, clock, controllers, states, simulation } = start({ settings: settingsWith() });
    await clock.turn();
    desire({ power: 'stopped' });
    expect(controllers.status().backendState).toBe('STOPPING');
    await clock.turn();
    expect(controllers.status()).toMatchObject({ backendState: 'STOPPED', converged: true, machine: { state: 'off' } });
    expect(states).toEqual(['STARTING', 'STARTED', 'STOPPING', 'STOPPED']);
    expect(controllers.status().counters.restarts).toBe(0);
    expect(simulation.model().cluster).toMatchObject({ state: 'stopped', installedVersion: '1.33.4' });
  });

  test('with a lower cluster version resets the cluster once', async () => {
    const { desire, clock, controllers } = start({ settings: settingsWith() });
    await clock.turn();
    desire({ settings: settingsWith({ 'kubernetes.version': '1.30.2' }) });
    await clock.turn();
    expect(controllers.status()).toMatchObject({ backendState: 'STARTED', counters: { restarts: 1, resets: 1 } });
  });

  test('cancels a start that is no longer wanted, without counting a failure', async () => {
    const { desire, clock, controllers, steps } = start({ latency: 60_000 });
    await clock.turn();
    expect(controllers.observed().machine).toMatchObject({ state: 'on' });
    expect(controllers.status().machine).toEqual({ state: 'absent' });
    desire({ power: 'stopped' });
    expect(controllers.status().backendState).toBe('STOPPING');
    await clock.turn();
    expect(controllers.status()).toMatchObject({ backendState: 'STOPPED', converged: true, counters: { failures: 0 } });
    expect(steps()).toEqual(['machine start failed']);
    expect(controllers.status().phases).toEqual([]);
  });

  test('does not interrupt a start that is still wanted', async () => {
    const { desire, clock, steps } = start({ latency: 60_000 });
    await clock.turn();
    desire({ settings: settingsWith({ 'kubernetes.enabled': false, 'application.debug': true }) });
    await clock.advance(60_000);
    expect(steps()).toEqual(['machine start done']);
  });

  test('never cancels a stop', async () => {
    const { desire, clock, steps } = start({ model: runningModel(NO_CLUSTER), latency: 1_000 });
    await clock.turn();
    desire({ power: 'stopped' });
    await clock.turn();
    desire({ power: 'started' });
    await clock.advance(5_000);
    expect(steps()).toEqual(['moby stop done', 'moby start done']);
  });
});
