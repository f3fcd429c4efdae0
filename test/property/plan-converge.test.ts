import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FaultSource } from '../../src/drivers/machines/simulated/options.ts';
import { RdError } from '../../src/errors.ts';
import { MAX_ATTEMPTS } from '../../src/reconcile/attempts.ts';
import { createControllers } from '../../src/reconcile/controllers.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { runs } from '../helpers/rounds.ts';
import { createVirtualClock } from '../reconcile/virtual-clock.ts';
import { modelArbitrary, powerArbitrary, settingsArbitrary } from '../reconcile/worlds.ts';

/** Faults drawn from a list, fewer in a row than make the loop give up. */
function drawnFaults(draws: readonly ('none' | 'before' | 'after')[]): { faults: FaultSource; struck: () => number } {
  let index = 0;
  let inARow = 0;
  let struck = 0;
  return {
    struck: () => struck,
    faults: () => {
      const when = draws.length === 0 ? 'none' : (draws[index++ % draws.length] ?? 'none');
      if (when === 'none' || ++inARow >= MAX_ATTEMPTS || index > draws.length) {
        inARow = 0;
        return undefined;
      }
      struck++;
      return { kind: 'error', when, error: new RdError('ERR_DRIVER_FAILED', 'bad luck.') };
    },
  };
}

const desiredArbitrary = fc.record({
  settings: settingsArbitrary,
  power: powerArbitrary,
  /** Turns of the event loop before the next change. */
  wait: fc.nat({ max: 12 }),
});

test('from any state, with faults and changed settings, the loop reaches the last desired state', async () => {
  await fc.assert(
    fc.asyncProperty(
      modelArbitrary,
      fc.array(desiredArbitrary, { minLength: 1, maxLength: 4 }),
      fc.array(fc.constantFrom('none' as const, 'none' as const, 'before' as const, 'after' as const), {
        maxLength: 12,
      }),
      async (model, desires, draws) => {
        const clock = createVirtualClock({ auto: true });
        const { faults, struck } = drawnFaults(draws);
        const simulation = memorySimulation({ model, now: clock.now, sleep: clock.sleep, latency: () => 5, faults });
        const [first, ...rest] = desires;
        if (!first) return;
        const controllers = createControllers({
          driver: simulation.driver,
          desired: { settings: first.settings, ...DEFAULT_BLOCKS, power: first.power, generation: 1 },
          clock,
          random: () => 0,
          log: () => undefined,
        });
        try {
          for (const [index, next] of rest.entries()) {
            for (let turn = 0; turn < next.wait; turn++) await new Promise((resolve) => setImmediate(resolve));
            controllers.desire({
              settings: next.settings,
              ...DEFAULT_BLOCKS,
              power: next.power,
              generation: index + 2,
            });
          }
          const status = await controllers.quiesce(new AbortController().signal);
          const last = desires.at(-1) ?? first;
          expect(status).toMatchObject({ converged: true, observedGeneration: desires.length, power: last.power });
          const withCluster = last.settings.kubernetes.enabled;
          expect(status.backendState).toBe(last.power === 'stopped' ? 'STOPPED' : withCluster ? 'STARTED' : 'DISABLED');
          // The model refuses two engines and a cluster without its engine: only drawn faults and canceled steps may fail.
          const { failures } = status.counters;
          expect(failures).toBeLessThanOrEqual(struck());
        } finally {
          await controllers.close();
        }
      },
    ),
    { numRuns: runs(300) },
  );
});
