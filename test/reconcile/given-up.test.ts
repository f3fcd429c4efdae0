import { describe, expect, onTestFinished, test } from 'vitest';
import type { MachineStatus } from '../../src/drivers/driver.ts';
import { RdError } from '../../src/errors.ts';
import { engineSpec, machineSpec } from '../../src/plan/backend.ts';
import { createGivenUp } from '../../src/reconcile/attempts.ts';
import { createControllers, IDLE_MS } from '../../src/reconcile/controllers.ts';
import type { Step } from '../../src/reconcile/step.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { failing, NO_CLUSTER, start } from './loop.ts';
import { createVirtualClock } from './virtual-clock.ts';
import { runningModel, seenOf, settingsWith } from './worlds.ts';

const CLUSTER = settingsWith();

describe('after a failure led to ERROR', () => {
  test('something that breaks later for another reason is repaired, and the failed step gets one more attempt', async () => {
    const { clock, controllers, simulation, steps } = start({
      settings: CLUSTER,
      faults: failing({ 'cluster start': 1 }, 'ERR_DRIVER_TERMINAL'),
    });
    await clock.advance(10 * IDLE_MS);
    expect(controllers.status().backendState).toBe('ERROR');
    const before = steps().length;
    simulation.meddle((model) => ({
      ...model,
      machine: { state: 'off' },
      engines: { ...model.engines, moby: { ...model.engines.moby, process: { state: 'stopped' } } },
    }));
    await clock.advance(60_000);
    expect(steps().slice(before)).toEqual(['machine start done', 'moby start done', 'cluster start done']);
    expect(controllers.status()).toMatchObject({ backendState: 'STARTED', converged: true });
  });

  test('what the failure itself left is never changed', async () => {
    const { clock, controllers, simulation, steps } = start({
      faults: failing({ 'moby start': 1 }, 'ERR_DRIVER_TERMINAL'),
    });
    await clock.turn();
    simulation.meddle((model) => ({
      ...model,
      engines: { ...model.engines, moby: { ...model.engines.moby, process: { state: 'hung' } } },
    }));
    await clock.advance(10 * IDLE_MS);
    simulation.meddle((model) => ({
      ...model,
      engines: { ...model.engines, moby: { ...model.engines.moby, process: { state: 'stopped' } } },
    }));
    await clock.advance(10 * IDLE_MS);
    expect(steps()).toEqual(['machine start done', 'moby start failed']);
    expect(controllers.status().backendState).toBe('ERROR');
  });
});

test('a new failure replaces the cause of the previous one', async () => {
  const givenUp = createGivenUp();
  const observed = await seenOf(runningModel(CLUSTER));
  const engine: Step = {
    part: 'engine',
    engine: 'moby',
    step: { do: 'start', spec: engineSpec(CLUSTER, DEFAULT_BLOCKS) },
  };
  const cluster: Step = { part: 'cluster', step: { do: 'stop' } };
  givenUp.begin(engine, observed);
  expect([1, 2].map(() => givenUp.isUnrelated(engine, observed))).toEqual([false, false]);
  givenUp.begin(cluster, observed);
  expect(givenUp.isUnrelated(undefined, observed)).toBe(false);
  expect(givenUp.isUnrelated(engine, observed)).toBe(true);
});

describe('a machine in ERROR after a failed repair', () => {
  /** A machine that runs and reports what it lacks; `failing` lists what a repair cannot do. */
  function scene() {
    const clock = createVirtualClock();
    const { driver } = memorySimulation({ model: runningModel(NO_CLUSTER), now: clock.now, sleep: clock.sleep });
    const world = {
      lacks: [] as string[],
      hopeless: new Set<string>(),
      machine: undefined as MachineStatus | undefined,
      tried: [] as string[],
    };
    const controllers = createControllers({
      driver: {
        ...driver,
        machine: {
          async observe() {
            const [repair] = world.lacks;
            const on = { state: 'on', spec: machineSpec(NO_CLUSTER, DEFAULT_BLOCKS) } as const;
            return world.machine ?? (repair === undefined ? on : { ...on, repair });
          },
          async perform(step) {
            world.tried.push(step.do === 'adjust' ? `adjust (${world.lacks.join()})` : step.do);
            if (step.do !== 'adjust') {
              world.machine = step.do === 'start' ? undefined : { state: 'off' };
              return;
            }
            world.lacks = world.lacks.filter((each) => world.hopeless.has(each));
            const [left] = world.lacks;
            if (left !== undefined) throw new RdError('ERR_DRIVER_TERMINAL', `${left} cannot be repaired`);
          },
        },
      },
      desired: { settings: NO_CLUSTER, ...DEFAULT_BLOCKS, power: 'started', generation: 1 },
      clock,
      random: () => 0.5,
      log: () => undefined,
    });
    onTestFinished(() => controllers.close());
    return { clock, controllers, world };
  }

  test('gets another repair that becomes due later, once, and stays in ERROR for the first', async () => {
    const { clock, controllers, world } = scene();
    world.lacks = ['memory'];
    world.hopeless.add('memory');
    await clock.advance(10 * IDLE_MS);
    expect(world.tried).toEqual(['adjust (memory)']);
    world.lacks = ['clock', 'memory'];
    await clock.advance(10 * IDLE_MS);
    expect(world.tried.slice(1)).toEqual(['adjust (clock,memory)']);
    expect(world.lacks).toEqual(['memory']);
    expect(controllers.status().backendState).toBe('ERROR');
    world.lacks = ['home', 'memory'];
    await clock.advance(10 * IDLE_MS);
    expect(world.tried.slice(2)).toEqual(['adjust (home,memory)']);
    world.lacks = [];
    await clock.advance(IDLE_MS);
    expect(controllers.status()).toMatchObject({ converged: true, backendState: 'DISABLED' });
  });

  test('is recreated when it breaks, but never stopped for a difference that the failure left', async () => {
    const { clock, world } = scene();
    world.lacks = ['memory'];
    world.hopeless.add('memory');
    await clock.advance(10 * IDLE_MS);
    const { memoryGiB, ...rest } = machineSpec(NO_CLUSTER, DEFAULT_BLOCKS);
    world.machine = { state: 'on', spec: { ...rest, memoryGiB: memoryGiB + 1 } };
    await clock.advance(10 * IDLE_MS);
    expect(world.tried).toEqual(['adjust (memory)']);
    world.lacks = [];
    world.machine = { state: 'broken', reason: 'GuestUnreachable', message: 'the guest does not respond' };
    await clock.advance(60_000);
    expect(world.tried.slice(1)).toEqual(['stop', 'start']);
  });
});
