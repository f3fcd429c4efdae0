import { describe, expect, test } from 'vitest';
import type { Driver, EngineDriver } from '../../src/drivers/driver.ts';
import { FULL_LOOK_MS, followedWorkload } from '../../src/drivers/engines/followed-workload.ts';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import { RdError } from '../../src/errors.ts';
import type { Clock } from '../../src/os/clock.ts';
import type { Observed } from '../../src/plan/backend.ts';
import { IDLE_MS } from '../../src/reconcile/controllers.ts';
import { STABLE_MS } from '../../src/reconcile/ends.ts';
import { LOOK_LIMIT_MS } from '../../src/reconcile/observe.ts';
import { failing, NO_CLUSTER, start } from './loop.ts';
import { runningModel, settingsWith } from './worlds.ts';

describe('looking', () => {
  test('the first one comes before any step', async () => {
    const { controllers, steps } = start({
      settings: settingsWith(),
      model: runningModel(settingsWith()),
      latency: 1_000,
    });
    expect(controllers.observed()).toHaveProperty('assumed');
    await controllers.firstLook(new AbortController().signal);
    expect(controllers.observed()).not.toHaveProperty('assumed');
    expect(controllers.observed().machine.state).toBe('on');
    expect(steps()).toEqual([]);
    await controllers.firstLook(new AbortController().signal);
  });

  test('an unresponsive driver delays the first one no longer than the signal allows', async () => {
    const { controllers } = start({ faults: (_part, step) => (step === 'observe' ? { kind: 'hang' } : undefined) });
    const waiting = new AbortController();
    const looked = controllers.firstLook(waiting.signal);
    waiting.abort();
    await looked;
    expect(controllers.status().conditions[0]?.reason).toBe('NotObserved');
  });

  /** Someone else starts a container. */
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

  test('each one sees what has happened since the last, at once and as often as requested', async () => {
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

  test('in an idle hour the loop reads the workload of an engine four times, and once for each request', async () => {
    let reads = 0;
    let checks = 0;
    const around = (driver: Driver, clock: Clock): Driver => {
      const { moby } = driver.engines;
      const workload = followedWorkload(async () => {
        reads += 1;
        return { containers: 3, runningContainers: 3, images: 3, running: [] };
      }, clock);
      workload.follow().heard(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'));
      const observe: EngineDriver['observe'] = async (signal, how = 'full') => {
        checks += 1;
        const status = await moby.observe(signal);
        return status.state === 'running' ? { ...status, workload: await workload.look(how, signal) } : status;
      };
      return { ...driver, engines: { ...driver.engines, moby: { ...moby, observe } } };
    };
    const { controllers, clock } = start({ model: runningModel(NO_CLUSTER), around });
    await clock.turn();
    await clock.advance(3_600_000);
    expect(checks).toBeGreaterThanOrEqual(3_600_000 / IDLE_MS);
    expect(reads).toBeLessThanOrEqual(1 + 3_600_000 / FULL_LOOK_MS);
    const before = reads;
    expect(await Promise.all([controllers.look(never), controllers.look(never)])).toEqual([true, true]);
    expect(reads).toBe(before + 1);
    await clock.advance(IDLE_MS);
    expect(reads).toBe(before + 1);
  });

  /** The engine dies. */
  function kill(model: Model): Model {
    const { moby } = model.engines;
    return { ...model, engines: { ...model.engines, moby: { ...moby, process: { state: 'hung' } } } };
  }

  test('the end of an engine is noticed when it happens, and repaired at once', async () => {
    const { controllers, clock, simulation, steps } = start({ model: runningModel(NO_CLUSTER) });
    await clock.turn();
    for (const round of [1, 2, 3]) {
      await clock.advance(STABLE_MS);
      expect(controllers.status().converged).toBe(true);
      simulation.meddle(kill);
      expect(controllers.status().converged).toBe(false);
      await clock.turn();
      expect(controllers.status()).toMatchObject({ converged: true, counters: { restarts: round } });
    }
    expect(steps()).toHaveLength(6);
    expect(clock.sleepers()).toBe(1);
  });

  test('an engine that keeps dying right after its start is noticed at once, logged, and restarted after growing pauses', async () => {
    const { controllers, clock, simulation, steps, condition, log } = start({ model: runningModel(NO_CLUSTER) });
    await clock.turn();
    const starts = () => steps().filter((step) => step === 'moby start done').length;
    for (let seconds = 0; seconds < 60; seconds++) {
      simulation.meddle((model) => (model.engines.moby.process.state === 'running' ? kill(model) : model));
      expect(controllers.status().converged).toBe(false);
      await clock.advance(1_000);
    }
    // After 5 s each, and then after 5, 10, 20 s.
    expect(starts()).toBe(5);
    expect(log.filter((text) => text === 'a part ended that was not stopped')).toHaveLength(5);
    const [, ended, again] = controllers.status().phases.slice(-3);
    expect([ended, again].map((phase) => phase && [phase.name, phase.outcome])).toEqual([
      ['engine run', 'failed'],
      ['engine start', 'done'],
    ]);
    expect(ended).toMatchObject({ ms: expect.any(Number), reason: expect.stringContaining('ended 5 times') });
    simulation.meddle((model) => (model.engines.moby.process.state === 'running' ? kill(model) : model));
    await clock.advance(2 * IDLE_MS);
    expect(condition('EngineReady')).toMatchObject({
      reason: 'KeepsEnding',
      concern: 'attention',
      message: expect.stringMatching(
        /^the engine ended \d times within \d+ s, each time soon after its start\. It is started again/,
      ),
    });
    expect(condition('Converged')?.reason).toBe('Retrying');
    await clock.advance(40_000);
    expect(controllers.status().converged).toBe(true);
    await clock.advance(STABLE_MS);
    simulation.meddle(kill);
    await clock.turn();
    expect(controllers.status().converged).toBe(true);
  });

  test('what may have ended is not called converged while its observation fails', async () => {
    let broken = false;
    const { controllers, clock, simulation } = start({
      model: runningModel(NO_CLUSTER),
      faults: (_part, step) =>
        broken && step === 'observe'
          ? { kind: 'error', when: 'before', error: new RdError('ERR_DRIVER_FAILED', 'no answer') }
          : undefined,
    });
    await clock.turn();
    broken = true;
    simulation.meddle(kill);
    await clock.turn();
    expect(controllers.status().converged).toBe(false);
    broken = false;
    await clock.advance(IDLE_MS);
    await clock.advance(IDLE_MS);
    expect(controllers.status()).toMatchObject({ converged: true, counters: { restarts: 1 } });
  });

  test('an end reported during an observation may have been missed by it', async () => {
    const looks: (() => void)[] = [];
    const { controllers, clock, simulation } = start({ model: runningModel(NO_CLUSTER) });
    await clock.advance(2 * IDLE_MS);
    const { moby } = simulation.driver.engines;
    const observe = moby.observe.bind(moby);
    moby.observe = async (signal) => {
      const status = await observe(signal);
      await new Promise<void>((resolve) => looks.push(resolve));
      return status;
    };
    void controllers.look(never);
    await clock.turn();
    simulation.meddle(kill);
    looks.shift()?.();
    await clock.turn();
    expect(controllers.status().converged).toBe(false);
    expect(looks).toHaveLength(1);
    moby.observe = observe;
    looks.shift()?.();
    await clock.turn();
    expect(controllers.status()).toMatchObject({ converged: true, counters: { restarts: 1 } });
  });

  test('a request during an observation gets one that starts later', async () => {
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

  test('a request during a step waits for its end, or for the signal', async () => {
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

  /** A converged loop whose drivers stop answering observations until the test says so. */
  async function deaf() {
    const state = { deaf: false };
    const loop = start({ faults: (_part, step) => (state.deaf && step === 'observe' ? { kind: 'hang' } : undefined) });
    await loop.clock.turn();
    state.deaf = true;
    await loop.clock.advance(IDLE_MS);
    return { ...loop, hear: () => Object.assign(state, { deaf: false }) };
  }

  test('a new desired state does not wait for an observation that hangs, and requests get the next one', async () => {
    const { controllers, clock, desire, hear } = await deaf();
    const asked = controllers.look(never);
    hear();
    desire({ power: 'stopped' });
    await clock.turn();
    expect(controllers.status()).toMatchObject({ backendState: 'STOPPED', converged: true, counters: { failures: 0 } });
    expect(await asked).toBe(true);
  });

  test('what was never observed is unknown, and assumed to run with the settings of the last start', async () => {
    const { controllers, clock, desire } = start({
      settings: settingsWith(),
      faults: (part, step) => (part === 'moby' && step === 'observe' ? { kind: 'hang' } : undefined),
    });
    await clock.turn();
    desire({ settings: settingsWith({ 'containerEngine.name': 'containerd' }) });
    const unknown = { state: 'unknown' };
    expect(controllers.status()).toMatchObject({
      machine: unknown,
      engines: { moby: unknown, containerd: unknown },
      cluster: unknown,
    });
    expect(controllers.observed()).toMatchObject({
      assumed: 'the service has not observed it yet',
      machine: { state: 'on' },
      engines: { moby: { state: 'running' }, containerd: { state: 'stopped' } },
      cluster: { state: 'running', installedVersion: '' },
    });
    await clock.advance(LOOK_LIMIT_MS);
    expect(controllers.observed().assumed).toBe('the last observation failed: no response within 30 seconds');
  });

  test('an observation that takes long says for how long, and the next one has more time', async () => {
    const { controllers, clock } = await deaf();
    await clock.advance(12_000);
    expect(controllers.waitingFor()).toBe('the driver has not answered for 12 seconds, where less than 1 is usual');
    await clock.advance(LOOK_LIMIT_MS - 12_000);
    expect(controllers.observed().assumed).toContain('no response within 30 seconds');
    const next = controllers.look(never);
    await clock.advance(2 * LOOK_LIMIT_MS);
    expect(await next).toBe(false);
    expect(controllers.observed().assumed).toContain('no response within 60 seconds');
  });

  test('an earlier observation is used while later ones fail', async () => {
    const { controllers, clock } = await deaf();
    expect(controllers.observed()).not.toHaveProperty('assumed');
    await clock.advance(LOOK_LIMIT_MS);
    expect(controllers.observed()).toMatchObject({
      assumed: 'the last observation failed: no response within 30 seconds, where less than 1 is usual',
      engines: { moby: { state: 'running', endpoint: 'simulated:moby' }, containerd: { state: 'stopped' } },
    });
    expect(controllers.status().engines.moby.state).toBe('running');
  });

  test('the end of the loop does not wait for an observation that hangs', async () => {
    const { controllers, clock } = await deaf();
    const asked = controllers.look(never);
    await controllers.close();
    expect(await asked).toBe(false);
    expect(clock.sleepers()).toBe(0);
  });

  test('an observation does not shorten the delay of a retry', async () => {
    const { controllers, clock, steps } = start({ faults: failing({ 'machine start': 2 }) });
    await clock.turn();
    expect(steps()).toEqual(['machine start failed']);
    for (let count = 0; count < 20; count++) expect(await controllers.look(never)).toBe(true);
    expect(steps()).toEqual(['machine start failed']);
    await clock.advance(60_000);
    expect(controllers.status().converged).toBe(true);
  });

  test('a failed observation is reported, and so is one after the end', async () => {
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

  /** A loop whose next observations fail, this many of them. */
  async function shaky(failures: number) {
    let left = 0;
    const loop = start({
      model: runningModel(NO_CLUSTER),
      faults: (part, step) =>
        part === 'machine' && step === 'observe' && left-- > 0
          ? { kind: 'error', when: 'before', error: new RdError('ERR_DRIVER_FAILED', 'no answer') }
          : undefined,
    });
    await loop.clock.turn();
    left = failures;
    return loop;
  }

  test('a caller that waits gets the observation that succeeds, others get the failure', async () => {
    const { controllers, clock } = await shaky(3);
    expect(await controllers.look(never)).toBe(false);
    const patient = controllers.look(never, 'until it succeeds');
    await clock.advance(IDLE_MS);
    expect(await patient).toBe(true);
  });

  test('waiting ends with the signal and with the loop', async () => {
    const { controllers, clock } = await shaky(Number.POSITIVE_INFINITY);
    const leaving = new AbortController();
    const given = controllers.look(leaving.signal, 'until it succeeds');
    const patient = controllers.look(never, 'until it succeeds');
    await clock.turn();
    leaving.abort();
    expect(await given).toBe(false);
    await controllers.close();
    expect(await patient).toBe(false);
    expect(clock.sleepers()).toBe(0);
  });
});
