import { describe, expect, onTestFinished, test } from 'vitest';
import { emptyModel } from '../../src/drivers/machines/simulated/model.ts';
import { RdError } from '../../src/errors.ts';
import { MAX_ATTEMPTS } from '../../src/reconcile/attempts.ts';
import { createControllers, IDLE_MS } from '../../src/reconcile/controllers.ts';
import { LOOK_LIMIT_MS } from '../../src/reconcile/observe.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { failing, NO_CLUSTER, start } from './loop.ts';
import { runningModel, settingsWith } from './worlds.ts';

describe('failures', () => {
  test('are retried with growing delays until they resolve', async () => {
    const { clock, controllers, condition, steps } = start({ faults: failing({ 'moby start': 2 }) });
    await clock.turn();
    expect(condition('EngineReady')).toMatchObject({ status: 'False', reason: 'StepFailed' });
    expect(condition('Converged')).toMatchObject({ reason: 'Retrying' });
    expect(condition('Converged')?.message).toContain('the disk is full');
    expect(controllers.status().backendState).toBe('STARTING');
    await clock.advance(374);
    expect(steps()).toHaveLength(2);
    await clock.advance(1);
    expect(steps()).toHaveLength(3);
    await clock.advance(749);
    expect(steps()).toHaveLength(3);
    await clock.advance(1);
    expect(steps()).toEqual(['machine start done', 'moby start failed', 'moby start failed', 'moby start done']);
    expect(controllers.status()).toMatchObject({ converged: true, counters: { failures: 2 } });
  });

  test('of work canceled by something else are retried', async () => {
    const { clock, controllers, steps } = start({ faults: failing({ 'moby start': 1 }, 'ERR_CANCELLED') });
    await clock.turn();
    expect(controllers.status().backendState).toBe('STARTING');
    await clock.advance(IDLE_MS);
    expect(steps()).toEqual(['machine start done', 'moby start failed', 'moby start done']);
    expect(controllers.status()).toMatchObject({ converged: true, counters: { failures: 1 } });
  });

  test('that are permanent lead to ERROR at once, with advice, until the desired state changes', async () => {
    const { clock, controllers, condition, steps, desire } = start({
      faults: failing({ 'moby start': 1 }, 'ERR_DRIVER_TERMINAL'),
    });
    const status = await controllers.quiesce(new AbortController().signal);
    expect(status).toMatchObject({ backendState: 'ERROR', converged: false, observedGeneration: 1 });
    expect(condition('Converged')).toMatchObject({ reason: 'Failed' });
    expect(condition('Converged')?.message).toMatch(/engine start failed .*the disk is full.* Free some space\.$/);
    await clock.advance(10 * IDLE_MS);
    expect(steps()).toEqual(['machine start done', 'moby start failed']);
    desire({});
    expect(controllers.status().backendState).toBe('STARTING');
    await clock.turn();
    expect(controllers.status()).toMatchObject({ backendState: 'DISABLED', converged: true });
  });

  test('setting the same desired state again starts a new attempt', async () => {
    const { controllers } = start({ faults: failing({ 'moby start': 1 }, 'ERR_DRIVER_TERMINAL') });
    await controllers.quiesce(new AbortController().signal);
    controllers.desire({ settings: NO_CLUSTER, ...DEFAULT_BLOCKS, power: 'started', generation: 1 });
    expect(await controllers.quiesce(new AbortController().signal)).toMatchObject({ backendState: 'DISABLED' });
  });

  test('lead to ERROR when the attempts are used up', async () => {
    const { clock, controllers, steps } = start({ faults: failing({ 'moby start': 100 }) });
    await clock.advance(600_000);
    expect(controllers.status().backendState).toBe('ERROR');
    expect(steps().filter((step) => step === 'moby start failed')).toHaveLength(MAX_ATTEMPTS);
  });

  test('ERROR clears when someone else fixes the cause', async () => {
    const { clock, controllers, simulation } = start({ faults: failing({ 'moby start': 1 }, 'ERR_DRIVER_TERMINAL') });
    await clock.turn();
    simulation.meddle((model) => ({ ...model, engines: runningModel(NO_CLUSTER).engines }));
    await clock.advance(IDLE_MS);
    expect(controllers.status()).toMatchObject({ backendState: 'DISABLED', converged: true });
  });

  test('a new desired state skips the delay before a retry', async () => {
    const { clock, controllers, desire } = start({ faults: failing({ 'moby start': 1 }) });
    await clock.turn();
    expect(controllers.status().converged).toBe(false);
    desire({});
    await clock.turn();
    expect(controllers.status().converged).toBe(true);
  });

  test('of an observation change nothing in the backend and are reported', async () => {
    const faults = failing({ 'moby observe': 0 });
    let blind = false;
    const { clock, controllers, condition, steps } = start({
      faults: (part, step) =>
        blind && step === 'observe'
          ? { kind: 'error', when: 'before', error: new RdError('ERR_IO', 'no answer.') }
          : faults(part, step),
    });
    await clock.turn();
    const before = steps().length;
    blind = true;
    await clock.advance(IDLE_MS);
    expect(condition('EngineReady')).toMatchObject({ status: 'Unknown', reason: 'ObservationFailed' });
    expect(controllers.status()).toMatchObject({ converged: false, backendState: 'DISABLED' });
    blind = false;
    await clock.advance(60_000);
    expect(controllers.status().converged).toBe(true);
    expect(steps()).toHaveLength(before);
  });

  test('a driver that never answers does not block the loop', async () => {
    let deaf = false;
    const { clock, controllers, condition } = start({
      faults: (_part, step) => (deaf && step === 'observe' ? { kind: 'hang' } : undefined),
    });
    await clock.turn();
    deaf = true;
    await clock.advance(IDLE_MS + LOOK_LIMIT_MS);
    expect(condition('Converged')).toMatchObject({ reason: 'Retrying' });
    expect(condition('Converged')?.message).toContain('no response within 30 seconds');
    deaf = false;
    await clock.advance(60_000);
    expect(controllers.status().converged).toBe(true);
  });

  test('an unexpected exception in a driver is a defect, not a retry', async () => {
    const { controllers, simulation, desire, condition } = start({
      faults: (part, step) => {
        if (part === 'containerd' && step === 'start') throw new TypeError('x is not a function');
        return undefined;
      },
    });
    await controllers.quiesce(new AbortController().signal);
    desire({ settings: settingsWith({ 'kubernetes.enabled': false, 'containerEngine.name': 'containerd' }) });
    expect((await controllers.quiesce(new AbortController().signal)).backendState).toBe('ERROR');
    expect(condition('Converged')?.message).toContain('x is not a function');
    expect(simulation.model().engines.containerd.process.state).toBe('stopped');
  });

  test('a step that succeeds without effect does not spin', async () => {
    const { clock, controllers, simulation, steps } = start();
    await clock.turn();
    const { driver } = simulation;
    const idle = createControllers({
      driver: { ...driver, machine: { observe: async () => ({ state: 'off' }), perform: driver.machine.perform } },
      desired: { settings: NO_CLUSTER, ...DEFAULT_BLOCKS, power: 'started', generation: 1 },
      clock,
      random: () => 0.5,
      log: () => undefined,
    });
    onTestFinished(() => idle.close());
    simulation.meddle(emptyModel);
    await clock.turn();
    expect(steps().filter((step) => step === 'machine start done')).toHaveLength(3);
    await clock.advance(600_000);
    expect(idle.status().backendState).toBe('ERROR');
    await controllers.close();
  });
});
