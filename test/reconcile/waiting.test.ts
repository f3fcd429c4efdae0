import { describe, expect, test } from 'vitest';
import { IDLE_MS } from '../../src/reconcile/controllers.ts';
import { NO_CLUSTER, start } from './loop.ts';
import { runningModel } from './worlds.ts';

describe('waiting and closing', () => {
  test('quiesce gives up when its signal aborts', async () => {
    const { controllers, clock } = start({ latency: 1_000_000 });
    await clock.turn();
    const waiting = new AbortController();
    const answer = controllers.quiesce(waiting.signal);
    waiting.abort();
    expect((await answer).converged).toBe(false);
  });

  test('close ends the loop, cancels a start in progress, and leaves the backend as it is', async () => {
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

  test('the transition time only changes with the status', async () => {
    const { clock, condition } = start();
    await clock.turn();
    const first = condition('EngineReady')?.lastTransitionTime;
    await clock.advance(3 * IDLE_MS);
    expect(condition('EngineReady')?.lastTransitionTime).toBe(first);
  });
});
