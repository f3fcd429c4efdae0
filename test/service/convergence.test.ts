import { expect, test } from 'vitest';
import { IDLE_MS } from '../../src/reconcile/controllers.ts';
import { type ConvergenceEvent, watchConvergence } from '../../src/service/metrics.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { failing, NO_CLUSTER, start } from '../reconcile/loop.ts';
import { settingsWith } from '../reconcile/worlds.ts';

/** What the watch sees of this loop, from its start at 0. */
function watched(options: Parameters<typeof start>[0] = {}) {
  const loop = start(options);
  const events: ConvergenceEvent[] = [];
  const see = watchConvergence(1, loop.clock.now());
  loop.controllers.onChange((status) => events.push(...see(status, loop.clock.now())));
  const killEngine = () =>
    loop.simulation.meddle((model) => {
      model.engines.moby.process = { state: 'stopped' };
      return model;
    });
  return { ...loop, events, killEngine, seen: () => events.splice(0) };
}

const STARTED = { kind: 'ended', cause: 'start', result: 'converged' };

test('a start, a change and drift are measured, each once', async () => {
  const { clock, desire, killEngine, seen } = watched({ latency: 1_000 });
  await clock.advance(3_000);
  expect(seen()).toEqual([{ ...STARTED, ms: 2_000 }]);
  await clock.advance(3 * IDLE_MS);
  expect(seen()).toEqual([]);
  desire({ settings: settingsWith({ 'kubernetes.enabled': false, 'containerEngine.name': 'containerd' }) });
  await clock.advance(5_000);
  expect(seen()).toEqual([{ kind: 'ended', cause: 'change', result: 'converged', ms: 2_000 }]);
  desire({ settings: NO_CLUSTER });
  await clock.advance(5_000);
  seen();
  killEngine();
  await clock.advance(IDLE_MS + 2_000);
  // It is measured from the death of the engine, which had just started and is restarted at the next regular look.
  expect(seen()).toEqual([{ kind: 'drift' }, { kind: 'ended', cause: 'drift', result: 'converged', ms: 3_000 }]);
});

test('a change that nothing follows from has converged at the next look', async () => {
  const { clock, desire, seen } = watched();
  await clock.turn();
  seen();
  desire({ settings: { ...NO_CLUSTER, images: { ...NO_CLUSTER.images, namespace: 'web' } } });
  await clock.turn();
  expect(seen()).toEqual([{ kind: 'ended', cause: 'change', result: 'converged', ms: 0 }]);
});

test('a failure is measured once, and a change that overtakes another ends no measurement', async () => {
  const { clock, desire, seen } = watched({ faults: failing({ 'moby start': 1 }, 'ERR_DRIVER_TERMINAL') });
  await clock.advance(4 * IDLE_MS);
  expect(seen()).toMatchObject([{ cause: 'start', result: 'failed' }]);
  desire({ power: 'stopped' });
  desire({ power: 'started' });
  await clock.advance(IDLE_MS);
  expect(seen()).toMatchObject([{ cause: 'change', result: 'converged' }]);
});

test('an observation that is due, or fails, is no drift', async () => {
  const { clock, controllers } = start();
  await clock.turn();
  const calm = controllers.status();
  expect(calm.converged).toBe(true);
  const see = watchConvergence(1, 0);
  expect(see(calm, 5)).toMatchObject([STARTED]);
  const doubtful = { ...calm, converged: false };
  expect([doubtful, calm, doubtful, calm].flatMap((status) => see(status, 10))).toEqual([]);
  const phases = [{ name: 'moby start', startedAt: '' }];
  expect(see(doubtful, 20)).toEqual([]);
  expect(see({ ...doubtful, phases }, 30)).toEqual([{ kind: 'drift' }]);
  expect(see(calm, 40)).toEqual([{ kind: 'ended', cause: 'drift', result: 'converged', ms: 20 }]);
});

test('an operation that stops and starts the backend is no drift', async () => {
  const { clock, controllers, seen, killEngine } = watched();
  await clock.turn();
  seen();
  const desired = { settings: NO_CLUSTER, ...DEFAULT_BLOCKS, power: 'started', generation: 1 } as const;
  controllers.desire({ ...desired, hold: { keep: 'off', reason: 'A snapshot: stopping the backend.' } });
  await clock.advance(IDLE_MS);
  expect(controllers.status().backendState).toBe('STOPPED');
  controllers.desire(desired);
  await clock.advance(IDLE_MS);
  expect(controllers.status().converged).toBe(true);
  expect(seen()).toEqual([]);
  killEngine();
  await clock.advance(2 * IDLE_MS);
  expect(seen()).toMatchObject([{ kind: 'drift' }, { cause: 'drift', result: 'converged' }]);
});
