import { describe, expect, test } from 'vitest';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import { RdError } from '../../src/errors.ts';
import type { Observed } from '../../src/plan/observed.ts';
import { firstLook } from '../../src/reconcile/first-look.ts';
import { failing, NO_CLUSTER, start } from './loop.ts';
import { runningModel, settingsWith } from './worlds.ts';

describe('looking', () => {
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
});
