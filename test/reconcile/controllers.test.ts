import { describe, expect, onTestFinished, test } from 'vitest';
import type { DriverInfo } from '../../src/drivers/driver.ts';
import type { Fault, FaultSource } from '../../src/drivers/machines/simulated/faults.ts';
import { memorySimulation } from '../../src/drivers/machines/simulated/memory.ts';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import { type ErrorCode, RdError } from '../../src/errors.ts';
import type { Observed } from '../../src/plan/observed.ts';
import { MAX_ATTEMPTS } from '../../src/reconcile/backoff.ts';
import type { Desired } from '../../src/reconcile/contract.ts';
import { createControllers, IDLE_MS } from '../../src/reconcile/controllers.ts';
import { firstLook } from '../../src/reconcile/first-look.ts';
import { LOOK_LIMIT_MS } from '../../src/reconcile/observe.ts';
import type { LoopStatus } from '../../src/reconcile/status.ts';
import { CLUSTER_ANSWER_MS, GRACE_MS, STEP_LIMITS_MS } from '../../src/reconcile/step-limits.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { createVirtualClock } from './virtual-clock.ts';
import { runningModel, settingsWith } from './worlds.ts';

const NO_CLUSTER = settingsWith({ 'kubernetes.enabled': false });

interface Setup {
  settings?: Settings;
  power?: Desired['power'];
  model?: Model;
  faults?: FaultSource;
  latency?: number;
  info?: Partial<DriverInfo>;
  clusterReadyMs?: number;
}

/** A loop over a simulation, on a clock that the test moves. */
function start({ settings = NO_CLUSTER, power = 'started', model = emptyModel(), latency = 0, ...rest }: Setup = {}) {
  const clock = createVirtualClock();
  const simulation = memorySimulation({
    model,
    now: clock.now,
    sleep: clock.sleep,
    latency: () => latency,
    ...rest,
  });
  const states: string[] = [];
  const desired = { settings, power, generation: 1 };
  const controllers = createControllers({
    driver: simulation.driver,
    desired,
    clock,
    random: () => 0.5,
    log: () => undefined,
  });
  const note = (status: LoopStatus) => {
    if (states.at(-1) !== status.backendState) states.push(status.backendState);
  };
  note(controllers.status());
  controllers.onChange(note);
  onTestFinished(() => controllers.close());
  let generation = 1;
  return {
    clock,
    simulation,
    controllers,
    states,
    desire: (next: Partial<Desired>) => {
      generation++;
      Object.assign(desired, next);
      controllers.desire({ ...desired, generation });
    },
    steps: () => simulation.log().map((record) => `${record.part} ${record.do} ${record.outcome}`),
    condition: (type: string) => controllers.status().conditions.find((condition) => condition.type === type),
  };
}

/** Fails the named steps so many times. */
function failing(times: Record<string, number>, code: ErrorCode = 'ERR_DRIVER_FAILED'): FaultSource {
  const left = new Map(Object.entries(times));
  return (part, step): Fault | undefined => {
    const name = `${part} ${step}`;
    const count = left.get(name) ?? 0;
    if (count <= 0) return undefined;
    left.set(name, count - 1);
    return {
      kind: 'error',
      when: 'before',
      error: new RdError(code, 'the disk is full.', { advice: 'Free some space.' }),
    };
  };
}

describe('convergence', () => {
  test('starts everything, says so step by step, and then rests', async () => {
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

  test('a driver without cluster is ready although the settings ask for one by default', async () => {
    const { controllers, condition } = start({ settings: settingsWith(), info: { hasCluster: false } });
    const status = await controllers.quiesce(new AbortController().signal);
    expect(status).toMatchObject({ converged: true, backendState: 'DISABLED', cluster: { state: 'unsupported' } });
    expect(condition('ClusterReady')).toMatchObject({ status: 'False', reason: 'NotSupportedByDriver' });
  });

  test('the installed cluster version is kept where the settings leave the choice', async () => {
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

  test('finds a running machine after the service was killed and touches nothing', async () => {
    const settings = settingsWith();
    const { controllers, steps } = start({ settings, model: runningModel(settings) });
    expect(await controllers.quiesce(new AbortController().signal)).toMatchObject({ backendState: 'STARTED' });
    expect(steps()).toEqual([]);
  });
});

describe('a new desired state', () => {
  test('a setting that is only stored never leaves the ready state', async () => {
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

  test('one that needs a restart leaves the ready state before the first step', async () => {
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

  test('one that is applied to what runs never leaves the ready state', async () => {
    const allowed = { 'kubernetes.enabled': false, 'containerEngine.allowedImages.enabled': true } as const;
    const { desire, states, clock, steps, controllers } = start({ settings: settingsWith(allowed), latency: 10 });
    await clock.advance(100);
    desire({ settings: settingsWith({ ...allowed, 'containerEngine.allowedImages.patterns': ['a/*'] }) });
    await clock.advance(100);
    expect(states).toEqual(['STARTING', 'DISABLED']);
    expect(steps().at(-1)).toBe('moby adjust done');
    expect(controllers.status().counters.restarts).toBe(0);
  });

  test('one that needs a restart while something is being applied leaves it at once all the same', async () => {
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

  test('power off stops everything and stays off', async () => {
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

  test('a lower cluster version resets the cluster once', async () => {
    const { desire, clock, controllers } = start({ settings: settingsWith() });
    await clock.turn();
    desire({ settings: settingsWith({ 'kubernetes.version': '1.30.2' }) });
    await clock.turn();
    expect(controllers.status()).toMatchObject({ backendState: 'STARTED', counters: { restarts: 1, resets: 1 } });
  });

  test('calls off a start that has become futile, and does not count that as a failure', async () => {
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

  test('a start that is still wanted goes on', async () => {
    const { desire, clock, steps } = start({ latency: 60_000 });
    await clock.turn();
    desire({ settings: settingsWith({ 'kubernetes.enabled': false, 'application.debug': true }) });
    await clock.advance(60_000);
    expect(steps()).toEqual(['machine start done']);
  });

  test('a stop is never called off', async () => {
    const { desire, clock, steps } = start({ model: runningModel(NO_CLUSTER), latency: 1_000 });
    await clock.turn();
    desire({ power: 'stopped' });
    await clock.turn();
    desire({ power: 'started' });
    await clock.advance(5_000);
    expect(steps()).toEqual(['moby stop done', 'moby start done']);
  });
});

describe('failures', () => {
  test('are retried with growing pauses until they heal', async () => {
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

  test('that cannot heal end in ERROR at once, with what to do, until the desired state changes', async () => {
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

  test('the same desired state, asked for again, is a new attempt', async () => {
    const { controllers } = start({ faults: failing({ 'moby start': 1 }, 'ERR_DRIVER_TERMINAL') });
    await controllers.quiesce(new AbortController().signal);
    controllers.desire({ settings: NO_CLUSTER, power: 'started', generation: 1 });
    expect(await controllers.quiesce(new AbortController().signal)).toMatchObject({ backendState: 'DISABLED' });
  });

  test('end in ERROR when the attempts are used up', async () => {
    const { clock, controllers, steps } = start({ faults: failing({ 'moby start': 100 }) });
    await clock.advance(600_000);
    expect(controllers.status().backendState).toBe('ERROR');
    expect(steps().filter((step) => step === 'moby start failed')).toHaveLength(MAX_ATTEMPTS);
  });

  test('ERROR ends by itself when somebody else put things right', async () => {
    const { clock, controllers, simulation } = start({ faults: failing({ 'moby start': 1 }, 'ERR_DRIVER_TERMINAL') });
    await clock.turn();
    simulation.meddle((model) => ({ ...model, engines: runningModel(NO_CLUSTER).engines }));
    await clock.advance(IDLE_MS);
    expect(controllers.status()).toMatchObject({ backendState: 'DISABLED', converged: true });
  });

  test('a new desired state ends the pause before a retry', async () => {
    const { clock, controllers, desire } = start({ faults: failing({ 'moby start': 1 }) });
    await clock.turn();
    expect(controllers.status().converged).toBe(false);
    desire({});
    await clock.turn();
    expect(controllers.status().converged).toBe(true);
  });

  test('of an observation leave the backend alone and are told', async () => {
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

  test('a driver that never answers does not hold the loop up', async () => {
    let deaf = false;
    const { clock, controllers, condition } = start({
      faults: (_part, step) => (deaf && step === 'observe' ? { kind: 'hang' } : undefined),
    });
    await clock.turn();
    deaf = true;
    await clock.advance(IDLE_MS + LOOK_LIMIT_MS);
    expect(condition('Converged')).toMatchObject({ reason: 'Retrying' });
    expect(condition('Converged')?.message).toContain('no answer within 30 seconds');
    deaf = false;
    await clock.advance(60_000);
    expect(controllers.status().converged).toBe(true);
  });

  test('a driver that throws something unexpected is a bug, not a thing to retry', async () => {
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

  test('a step that succeeds and changes nothing does not spin', async () => {
    const { clock, controllers, simulation, steps } = start();
    await clock.turn();
    const { driver } = simulation;
    const idle = createControllers({
      driver: { ...driver, machine: { observe: async () => ({ state: 'off' }), perform: driver.machine.perform } },
      desired: { settings: NO_CLUSTER, power: 'started', generation: 1 },
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

describe('time limits', () => {
  /** The first start of moby never ends, and does not heed being called off, until the test says so. */
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
    const desired = { settings: NO_CLUSTER, power: 'started' as const, generation: 1 };
    const controllers = createControllers({ driver, desired, clock, random: () => 0.5, log: () => undefined });
    onTestFinished(() => controllers.close());
    return { clock, controllers, simulation, desired, release: () => release(), begun: () => begun };
  }

  test('a step that hangs is called off, counts as failed and is tried again', async () => {
    let hangs = true;
    const { clock, controllers, condition } = start({
      faults: (part, step) => (hangs && part === 'moby' && step === 'start' ? { kind: 'hang' } : undefined),
    });
    await clock.advance(STEP_LIMITS_MS['engine start'] - 1);
    expect(condition('EngineReady')).toMatchObject({ reason: 'Starting' });
    hangs = false;
    await clock.advance(1);
    expect(condition('EngineReady')).toMatchObject({ reason: 'StepFailed', concern: 'attention' });
    expect(condition('EngineReady')?.message).toContain('engine start did not end within 5 minutes');
    expect(controllers.status().phases.at(-1)).toMatchObject({ outcome: 'failed', ms: STEP_LIMITS_MS['engine start'] });
    await clock.advance(1_000);
    expect(controllers.status()).toMatchObject({ converged: true, counters: { failures: 1 } });
  });

  test('a step that ends in time leaves no timer behind', async () => {
    const { clock, controllers } = start();
    await clock.turn();
    expect(controllers.status().converged).toBe(true);
    expect(clock.sleepers()).toBe(1);
  });

  test('one that does not heed being called off ends in ERROR, and nothing is done beside it', async () => {
    const { clock, controllers, begun } = deafStart();
    await clock.advance(STEP_LIMITS_MS['engine start'] + GRACE_MS - 1);
    expect(controllers.status().backendState).toBe('STARTING');
    await clock.advance(1);
    const status = await controllers.quiesce(new AbortController().signal);
    expect(status).toMatchObject({ backendState: 'ERROR', observedGeneration: 1, counters: { failures: 1 } });
    expect(status.conditions.at(-1)).toMatchObject({ reason: 'Failed' });
    expect(status.conditions.at(-1)?.message).toMatch(/still has not ended .* rdctl shutdown, then rdctl start\.$/);
    await clock.advance(10 * STEP_LIMITS_MS['engine start']);
    expect(begun()).toBe(1);
  });

  test('a new desired state does not start a second step beside it, and says so', async () => {
    const { clock, controllers, simulation, desired, begun } = deafStart();
    await clock.advance(STEP_LIMITS_MS['engine start'] + GRACE_MS);
    controllers.desire({ ...desired, power: 'stopped', generation: 2 });
    await clock.advance(60_000);
    expect(controllers.status()).toMatchObject({ backendState: 'ERROR', observedGeneration: 2 });
    expect(simulation.log().map((record) => `${record.part} ${record.do}`)).toEqual(['machine start']);
    expect(begun()).toBe(1);
  });

  test('when it ends after all, the loop goes on by itself', async () => {
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

  test('a start that has become futile and does not heed that is given up after the grace', async () => {
    const { clock, controllers, desired, begun } = deafStart();
    await clock.advance(1_000);
    controllers.desire({ ...desired, power: 'stopped', generation: 2 });
    await clock.advance(GRACE_MS);
    expect(controllers.status()).toMatchObject({ backendState: 'ERROR', observedGeneration: 2 });
    expect(begun()).toBe(1);
  });

  test('close does not wait for it for ever', async () => {
    const { clock, controllers } = deafStart();
    await clock.turn();
    const closed = controllers.close();
    await clock.advance(GRACE_MS);
    await closed;
    expect(clock.sleepers()).toBe(0);
  });

  test('a cluster that never answers is an error in the end, and none any more when it answers', async () => {
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
      /has not answered for 10 minutes.* kubernetes\.enabled to false\.$/,
    );
    expect(condition('Converged')).toMatchObject({ reason: 'Failed' });
    expect(controllers.status().counters.failures).toBe(1);
    await clock.advance(CLUSTER_ANSWER_MS + IDLE_MS);
    expect(controllers.status()).toMatchObject({ backendState: 'STARTED', converged: true });
    expect(states).toEqual(['STARTING', 'ERROR', 'STARTED']);
    expect(steps()).toHaveLength(3);
  });

  test('asking again gives a cluster its time anew', async () => {
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

describe('drift', () => {
  test('an engine that died is started again', async () => {
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

describe('waiting and closing', () => {
  test('the first look comes before anything is done', async () => {
    const { controllers, steps } = start({
      settings: settingsWith(),
      model: runningModel(settingsWith()),
      latency: 1_000,
    });
    expect(controllers.observed().machine.state).toBe('off');
    await firstLook(controllers, new AbortController().signal);
    expect(controllers.observed().machine.state).toBe('on');
    expect(steps()).toEqual([]);
    await firstLook(controllers, new AbortController().signal);
  });

  test('a driver that does not answer holds the first look up no longer than the signal', async () => {
    const { controllers } = start({ faults: (_part, step) => (step === 'observe' ? { kind: 'hang' } : undefined) });
    const waiting = new AbortController();
    const looked = firstLook(controllers, waiting.signal);
    waiting.abort();
    await looked;
    expect(controllers.status().conditions[0]?.reason).toBe('NotObserved');
  });

  /** Somebody else starts a container. */
  function startContainer(model: Model): Model {
    const { moby } = model.engines;
    return {
      ...model,
      engines: {
        ...model.engines,
        moby: { ...moby, containers: [...moby.containers, { name: 'new', running: true }] },
      },
    };
  }

  function containers({ engines: { moby } }: Observed): number | undefined {
    return moby.state === 'running' ? moby.workload.runningContainers : undefined;
  }

  const never = new AbortController().signal;

  test('a look sees what has happened since the last one, at once and as often as asked', async () => {
    const { controllers, clock, simulation, steps } = start({ model: runningModel(NO_CLUSTER) });
    await clock.turn();
    for (const count of [1, 2, 3]) {
      simulation.meddle(startContainer);
      expect(containers(controllers.observed())).toBe(count - 1);
      expect(await Promise.all([controllers.look(never), controllers.look(never)])).toEqual([true, true]);
      expect(containers(controllers.observed())).toBe(count);
    }
    expect(steps()).toEqual([]);
    expect(controllers.status().converged).toBe(true);
  });

  test('a look that is asked for during another is one that begins after it', async () => {
    const looks: (() => void)[] = [];
    const { controllers, clock, simulation } = start({ model: runningModel(NO_CLUSTER) });
    await clock.turn();
    const { moby } = simulation.driver.engines;
    const observe = moby.observe.bind(moby);
    moby.observe = async (signal) => {
      const status = await observe(signal);
      await new Promise<void>((resolve) => looks.push(resolve));
      return status;
    };
    const first = controllers.look(never);
    await clock.turn();
    simulation.meddle(startContainer);
    const second = controllers.look(never);
    looks.shift()?.();
    expect(await first).toBe(true);
    expect(containers(controllers.observed())).toBe(0);
    await clock.turn();
    looks.shift()?.();
    expect(await second).toBe(true);
    expect(containers(controllers.observed())).toBe(1);
  });

  test('a look during a step waits for its end, or for the signal', async () => {
    const { controllers, clock, condition } = start({ latency: 1_000 });
    await clock.turn();
    const impatient = new AbortController();
    const given = controllers.look(impatient.signal);
    const patient = controllers.look(never);
    await clock.turn();
    impatient.abort();
    expect(await given).toBe(false);
    expect(condition('MachineReady')?.reason).toBe('Starting');
    await clock.advance(1_000);
    expect(await patient).toBe(true);
    expect(controllers.observed().machine.state).toBe('on');
  });

  test('a look does not hasten the next attempt of a failed step', async () => {
    const { controllers, clock, steps } = start({ faults: failing({ 'machine start': 2 }) });
    await clock.turn();
    expect(steps()).toEqual(['machine start failed']);
    for (let count = 0; count < 20; count++) expect(await controllers.look(never)).toBe(true);
    expect(steps()).toEqual(['machine start failed']);
    await clock.advance(60_000);
    expect(controllers.status().converged).toBe(true);
  });

  test('a look that fails says so, and so does one after the end', async () => {
    let broken = false;
    const { controllers, clock } = start({
      model: runningModel(NO_CLUSTER),
      faults: (_part, step) =>
        broken && step === 'observe'
          ? { kind: 'error', when: 'before', error: new RdError('ERR_DRIVER_FAILED', 'no answer') }
          : undefined,
    });
    await clock.turn();
    broken = true;
    expect(await controllers.look(never)).toBe(false);
    broken = false;
    expect(await controllers.look(never)).toBe(true);
    const last = controllers.look(never);
    await controllers.close();
    expect(await controllers.look(never)).toBe(false);
    expect(typeof (await last)).toBe('boolean');
    expect(clock.sleepers()).toBe(0);
  });

  test('quiesce gives up when its signal aborts', async () => {
    const { controllers, clock } = start({ latency: 1_000_000 });
    await clock.turn();
    const waiting = new AbortController();
    const answer = controllers.quiesce(waiting.signal);
    waiting.abort();
    expect((await answer).converged).toBe(false);
  });

  test('close ends the loop, a start under way included, and leaves the backend as it is', async () => {
    const { controllers, clock, simulation } = start({ latency: 1_000_000 });
    await clock.turn();
    const answer = controllers.quiesce(new AbortController().signal);
    await controllers.close();
    expect((await answer).converged).toBe(false);
    expect(simulation.model().machine).toEqual({ state: 'absent' });
    expect(clock.sleepers()).toBe(0);
  });

  test('close lets a stop finish', async () => {
    const { controllers, clock, desire, simulation } = start({ model: runningModel(NO_CLUSTER), latency: 1_000 });
    await clock.turn();
    desire({ power: 'stopped' });
    await clock.turn();
    const closed = controllers.close();
    await clock.advance(1_000);
    await closed;
    expect(simulation.model().engines.moby.process).toEqual({ state: 'stopped' });
    expect(simulation.model().machine.state).toBe('on');
  });

  test('a transition time stays as long as the status does', async () => {
    const { clock, condition } = start();
    await clock.turn();
    const first = condition('EngineReady')?.lastTransitionTime;
    await clock.advance(3 * IDLE_MS);
    expect(condition('EngineReady')?.lastTransitionTime).toBe(first);
  });
});

function stopped(installedVersion: string): Model['cluster'] {
  return { state: 'stopped', installedVersion, workloads: [] };
}
