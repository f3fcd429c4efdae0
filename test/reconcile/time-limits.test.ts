import { describe, expect, onTestFinished, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import { CLUSTER_ANSWER_MS } from '../../src/reconcile/attempts.ts';
import { createControllers, IDLE_MS } from '../../src/reconcile/controllers.ts';
import { GRACE_MS, STEP_LIMITS_MS } from '../../src/reconcile/perform.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { NO_CLUSTER, start } from './loop.ts';
import { createVirtualClock } from './virtual-clock.ts';
import { settingsWith } from './worlds.ts';

describe('time limits', () => {
  /** The first start of moby never ends, and ignores its cancellation, until the test says so. */
  function deafStart(clock = createVirtualClock()) {
    const simulation = memorySimulation({ now: clock.now, sleep: clock.sleep });
    const { moby } = simulation.driver.engines;
    let release = () => {};
    let begun = 0;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const perform: typeof moby.perform = async (step, signal) => {
      begun++;
      if (begun === 1) await held;
      return moby.perform(step, begun === 1 ? new AbortController().signal : signal);
    };
    const driver = {
      ...simulation.driver,
      engines: { ...simulation.driver.engines, moby: { observe: moby.observe, perform } },
    };
    const desired = {
      settings: NO_CLUSTER,
      ...DEFAULT_BLOCKS,
      power: 'started' as const,
      generation: 1,
    };
    const controllers = createControllers({ driver, desired, clock, random: () => 0.5, log: () => undefined });
    onTestFinished(() => controllers.close());
    return { clock, controllers, simulation, desired, release: () => release(), begun: () => begun };
  }

  test('a step that hangs is canceled, counts as failed, and is retried', async () => {
    let hangs = true;
    const { clock, controllers, condition } = start({
      faults: (part, step) => (hangs && part === 'moby' && step === 'start' ? { kind: 'hang' } : undefined),
    });
    await clock.advance(STEP_LIMITS_MS['engine start'] - 1);
    expect(condition('EngineReady')).toMatchObject({ reason: 'Starting' });
    hangs = false;
    await clock.advance(1);
    expect(condition('EngineReady')).toMatchObject({ reason: 'StepFailed', concern: 'attention' });
    expect(condition('EngineReady')?.message).toContain('engine start did not finish within 5 minutes');
    expect(controllers.status().phases.at(-1)).toMatchObject({
      outcome: 'failed',
      ms: STEP_LIMITS_MS['engine start'],
      reason: expect.stringContaining('engine start did not finish within 5 minutes'),
    });
    await clock.advance(1_000);
    expect(controllers.status()).toMatchObject({ converged: true, counters: { failures: 1 } });
  });

  test('a step that always hangs leads to ERROR when its attempts have taken twice the limit', async () => {
    const { clock, controllers, condition } = start({
      faults: (part, step) => (part === 'moby' && step === 'start' ? { kind: 'hang' } : undefined),
    });
    const limit = STEP_LIMITS_MS['engine start'];
    await clock.advance(2 * limit);
    expect(controllers.status().backendState).toBe('STARTING');
    await clock.advance(1_000);
    expect(controllers.status()).toMatchObject({ backendState: 'ERROR', counters: { failures: 2 } });
    expect(condition('EngineReady')?.message).toContain('did not finish within 5 minutes');
    await clock.advance(4 * limit);
    expect(controllers.status().counters.failures).toBe(2);
  });

  test('a step that reports progress is quoted, with advice', async () => {
    const clock = createVirtualClock();
    const { driver: simulated } = memorySimulation({ now: clock.now, sleep: clock.sleep });
    const perform: typeof simulated.machine.perform = (_step, signal) =>
      new Promise((_resolve, reject) => {
        const error = new RdError('ERR_CANCELLED', 'half of it is done', { advice: 'Ask for it again.' });
        signal.addEventListener('abort', () => reject(error), { once: true });
      });
    const driver = { ...simulated, machine: { observe: simulated.machine.observe, perform } };
    const desired = {
      settings: NO_CLUSTER,
      ...DEFAULT_BLOCKS,
      power: 'started' as const,
      generation: 1,
    };
    const controllers = createControllers({ driver, desired, clock, random: () => 0.5, log: () => undefined });
    onTestFinished(() => controllers.close());
    const message = () => controllers.status().conditions.find(({ type }) => type === 'Converged')?.message;
    await clock.advance(STEP_LIMITS_MS['machine start']);
    const late = 'machine start did not finish within 10 minutes with the simulated driver and was canceled';
    expect(message()).toBe(`${late}: half of it is done. Retrying.`);
    await clock.advance(STEP_LIMITS_MS['machine start'] + 1_000);
    expect(message()).toBe(`${late}: half of it is done (2 attempts). Ask for it again.`);
  });

  /** A start of the machine that takes six times its limit, and reports progress every minute. */
  function longStart() {
    const clock = createVirtualClock();
    const { driver: simulated } = memorySimulation({ now: clock.now, sleep: clock.sleep });
    const limit = STEP_LIMITS_MS['machine start'];
    const perform: typeof simulated.machine.perform = async (step, signal, progress) => {
      for (let passed = 0; passed < 6 * limit && !signal.aborted; passed += 60_000) {
        await clock.sleep(60_000, signal);
        progress?.();
      }
      if (signal.aborted) throw new RdError('ERR_CANCELLED', 'it was canceled');
      await simulated.machine.perform(step, signal);
    };
    const driver = { ...simulated, machine: { observe: simulated.machine.observe, perform } };
    const desired = {
      settings: NO_CLUSTER,
      ...DEFAULT_BLOCKS,
      power: 'started' as const,
      generation: 1,
    };
    const controllers = createControllers({ driver, desired, clock, random: () => 0.5, log: () => undefined });
    onTestFinished(() => controllers.close());
    return { clock, controllers, desired, limit };
  }

  test('a step that makes progress gets its full limit again', async () => {
    const { clock, controllers, limit } = longStart();
    await clock.advance(5 * limit);
    expect(controllers.status()).toMatchObject({ backendState: 'STARTING', counters: { failures: 0 } });
    await clock.advance(limit + 60_000);
    expect(controllers.status()).toMatchObject({ converged: true, counters: { failures: 0 } });
  });

  test('a step that makes progress delays a new desired state at most for its limit', async () => {
    const { clock, controllers, desired, limit } = longStart();
    await clock.advance(3 * limit);
    // Still wanted, so it is not canceled at once.
    controllers.desire({ ...desired, settings: settingsWith({ 'containerEngine.name': 'containerd' }), generation: 2 });
    await clock.advance(limit - 60_000);
    const failures = () => controllers.status().phases.filter(({ outcome }) => outcome === 'failed');
    expect(failures()).toEqual([]);
    await clock.advance(60_000);
    expect(failures()).toEqual([expect.objectContaining({ name: 'machine start' })]);
  });

  test('a step that made progress and then hangs is canceled, and gets its attempts', async () => {
    const clock = createVirtualClock();
    const { driver: simulated } = memorySimulation({ now: clock.now, sleep: clock.sleep });
    const perform: typeof simulated.machine.perform = async (_step, signal, progress) => {
      for (let minutes = 0; minutes < 30; minutes += 1) {
        await clock.sleep(60_000, signal);
        progress?.();
      }
      await clock.sleep(Number.MAX_SAFE_INTEGER, signal);
      throw new RdError('ERR_CANCELLED', 'it was canceled');
    };
    const driver = { ...simulated, machine: { observe: simulated.machine.observe, perform } };
    const desired = {
      settings: NO_CLUSTER,
      ...DEFAULT_BLOCKS,
      power: 'started' as const,
      generation: 1,
    };
    const controllers = createControllers({ driver, desired, clock, random: () => 0.5, log: () => undefined });
    onTestFinished(() => controllers.close());
    await clock.advance(30 * 60_000 + STEP_LIMITS_MS['machine start']);
    const message = controllers.status().conditions.find(({ type }) => type === 'Converged')?.message;
    expect(message).toMatch(/machine start did not make progress for 10 minutes .* Retrying/);
    expect(controllers.status()).toMatchObject({ counters: { failures: 1 } });
    expect(controllers.status().backendState).not.toBe('ERROR');
  });

  test('a step that always fails late leads to ERROR just as early', async () => {
    const limit = STEP_LIMITS_MS['machine start'];
    const { clock, controllers } = start({
      latency: 0.7 * limit,
      faults: (part, step) =>
        part === 'machine' && step === 'start'
          ? { kind: 'error', when: 'after', error: new RdError('ERR_DRIVER_FAILED', 'no space.') }
          : undefined,
    });
    await clock.advance(3 * limit);
    expect(controllers.status()).toMatchObject({ backendState: 'ERROR', counters: { failures: 3 } });
  });

  test('a step that ends in time leaves no timer', async () => {
    const { clock, controllers } = start();
    await clock.turn();
    expect(controllers.status().converged).toBe(true);
    expect(clock.sleepers()).toBe(1);
  });

  test('a step that ignores its cancellation leads to ERROR, and no other step runs beside it', async () => {
    const { clock, controllers, begun } = deafStart();
    await clock.advance(STEP_LIMITS_MS['engine start'] + GRACE_MS - 1);
    expect(controllers.status().backendState).toBe('STARTING');
    await clock.advance(1);
    const status = await controllers.quiesce(new AbortController().signal);
    expect(status).toMatchObject({ backendState: 'ERROR', observedGeneration: 1, counters: { failures: 1 } });
    expect(status.conditions.at(-1)).toMatchObject({ reason: 'Failed' });
    expect(status.conditions.at(-1)?.message).toMatch(/is still running with .* rdctl shutdown, then rdctl start\.$/);
    await clock.advance(10 * STEP_LIMITS_MS['engine start']);
    expect(begun()).toBe(1);
  });

  test('a new desired state starts no second step beside it, and reports that', async () => {
    const { clock, controllers, simulation, desired, begun } = deafStart();
    await clock.advance(STEP_LIMITS_MS['engine start'] + GRACE_MS);
    controllers.desire({ ...desired, power: 'stopped', generation: 2 });
    await clock.advance(60_000);
    expect(controllers.status()).toMatchObject({ backendState: 'ERROR', observedGeneration: 2 });
    expect(simulation.log().map((record) => `${record.part} ${record.do}`)).toEqual(['machine start']);
    expect(begun()).toBe(1);
  });

  test('when it finally ends, the loop continues', async () => {
    const { clock, controllers, simulation, desired, release } = deafStart();
    await clock.advance(STEP_LIMITS_MS['engine start'] + GRACE_MS);
    controllers.desire({ ...desired, power: 'stopped', generation: 2 });
    await clock.turn();
    release();
    await clock.advance(IDLE_MS);
    expect(controllers.status()).toMatchObject({ backendState: 'STOPPED', converged: true, observedGeneration: 2 });
    expect(simulation.log().map((record) => `${record.part} ${record.do} ${record.outcome}`)).toEqual([
      'machine start done',
      'moby start done',
      'moby stop done',
      'machine stop done',
    ]);
  });

  test('an unwanted start that ignores its cancellation is given up after the grace period', async () => {
    const { clock, controllers, desired, begun } = deafStart();
    await clock.advance(1_000);
    controllers.desire({ ...desired, power: 'stopped', generation: 2 });
    await clock.advance(GRACE_MS);
    expect(controllers.status()).toMatchObject({ backendState: 'ERROR', observedGeneration: 2 });
    expect(begun()).toBe(1);
  });

  test('close waits for it with a limit', async () => {
    const { clock, controllers } = deafStart();
    await clock.turn();
    const closed = controllers.close();
    await clock.advance(GRACE_MS);
    await closed;
    expect(clock.sleepers()).toBe(0);
  });

  test('a cluster that never answers becomes an error, and recovers when it answers', async () => {
    const { clock, controllers, condition, states, steps } = start({
      settings: settingsWith(),
      clusterReadyMs: 2 * CLUSTER_ANSWER_MS,
    });
    await clock.advance(CLUSTER_ANSWER_MS - 1);
    expect(condition('ClusterReady')).toMatchObject({ reason: 'NotAnsweringYet', concern: 'patience' });
    await clock.advance(1_000);
    expect(await controllers.quiesce(new AbortController().signal)).toMatchObject({ backendState: 'ERROR' });
    expect(condition('ClusterReady')).toMatchObject({ reason: 'NotReadyInTime', concern: 'attention' });
    expect(condition('ClusterReady')?.message).toMatch(
      /has not responded for 10 minutes.* kubernetes\.enabled to false\.$/,
    );
    expect(condition('Converged')).toMatchObject({ reason: 'Failed' });
    expect(controllers.status().counters.failures).toBe(1);
    await clock.advance(CLUSTER_ANSWER_MS + IDLE_MS);
    expect(controllers.status()).toMatchObject({ backendState: 'STARTED', converged: true });
    expect(states).toEqual(['STARTING', 'ERROR', 'STARTED']);
    expect(steps()).toHaveLength(3);
  });

  test('a retry gives a cluster its full time again', async () => {
    const { clock, controllers, desire, condition } = start({
      settings: settingsWith(),
      clusterReadyMs: 10 * CLUSTER_ANSWER_MS,
    });
    await clock.advance(CLUSTER_ANSWER_MS + 1_000);
    expect(controllers.status().backendState).toBe('ERROR');
    desire({});
    await clock.advance(CLUSTER_ANSWER_MS - 1_000);
    expect(condition('ClusterReady')).toMatchObject({ reason: 'NotAnsweringYet' });
    await clock.advance(2_000);
    expect(controllers.status().backendState).toBe('ERROR');
  });
});
