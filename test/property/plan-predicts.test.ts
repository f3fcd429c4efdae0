import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { goalOf } from '../../src/plan/backend.ts';
import type { PlanRequest } from '../../src/plan/change.ts';
import { consequencesOf } from '../../src/plan/consequences.ts';
import type { PlannedDeed } from '../../src/plan/deed.ts';
import { makePlan } from '../../src/plan/plan.ts';
import { expectedSteps } from '../../src/plan/prediction.ts';
import { restartReasons } from '../../src/plan/restart-reasons.ts';
import { createControllers } from '../../src/reconcile/controllers.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { runs } from '../helpers/rounds.ts';
import { settingsArbitrary as anySettings } from '../helpers/settings-arbitrary.ts';
import { createVirtualClock } from '../reconcile/virtual-clock.ts';
import { settingsArbitrary as fewValues, powerArbitrary } from '../reconcile/worlds.ts';

const EXTENSIONS = 'application.extensions.installed';
const TARGET = { product: 'rdctl', driver: 'simulated', simulated: true };

/** A few values each, which often coincide, and everything that is valid. */
const settingsArbitrary: fc.Arbitrary<Settings> = fc.oneof({ arbitrary: fewValues, weight: 3 }, anySettings('linux'));

const requestArbitrary: fc.Arbitrary<PlanRequest> = fc
  .record({
    wanted: settingsArbitrary,
    /** Which settings are managed. */
    managed: fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
    state: fc.constantFrom('started' as const, 'stopped' as const, 'unmanaged' as const),
    prune: fc.subarray(['diagnostics.mutedChecks', 'WSL.integrations', EXTENSIONS]),
  })
  .map(({ wanted, managed, state, prune }) => {
    const settings = { version: 19 };
    for (const [index, [path, value]] of leaves(wanted).entries()) {
      if (managed[index]) setLeaf(settings, path, value);
    }
    return { settings, state, prune };
  });

/** Runs a loop on a simulation until it matches `live` and `power`; then plans, applies, and compares. */
async function planAndApply(live: Settings, power: 'started' | 'stopped', startedOnce: boolean, request: PlanRequest) {
  const clock = createVirtualClock({ auto: true });
  const simulation = memorySimulation({ now: clock.now, firstWorkload: { images: 3, containers: 2 } });
  const desired = {
    settings: live,
    ...DEFAULT_BLOCKS,
    power: startedOnce ? ('started' as const) : power,
    generation: 1,
  };
  const controllers = createControllers({
    driver: simulation.driver,
    desired,
    clock,
    random: () => 0,
    log: () => undefined,
  });
  const quiet = () => controllers.quiesce(new AbortController().signal);
  try {
    await quiet();
    controllers.desire({ ...desired, power, generation: 2 });
    await quiet();
    const { plan, deed } = planOf(live, power);
    const { patch } = deed;
    const seen = controllers.observed();
    const after = deed.after.settings;
    const powerAfter = deed.next.power ?? power;
    expect(powerAfter).toBe(request.state === 'unmanaged' ? power : request.state);
    // The wire format names the Spin operator even while the cluster is off, where nothing is restarted for it.
    const reasons = Object.keys(restartReasons(after, controllers.observed(), SIMULATED_INFO, live)).filter(
      (path) => after.kubernetes.enabled || path !== 'experimental.kubernetes.options.spinkube',
    );
    const before = simulation.log().length;
    const running = Object.values(simulation.model().engines)
      .flatMap((engine) => engine.containers)
      .filter((container) => container.running).length;
    const counted = { ...controllers.status().counters };
    const states = new Set<string>();
    const stop = controllers.onChange((status) => states.add(status.backendState));
    const ready = controllers.status().backendState;
    controllers.desire({ settings: after, ...DEFAULT_BLOCKS, power: powerAfter, generation: 3 });
    const status = await quiet();
    stop();
    const steps = simulation
      .log()
      .slice(before)
      .map((record) => ({ ...record, name: `${record.part} ${record.do}` }));
    const { plan: second } = planOf(after, powerAfter);
    const goal = goalOf({ settings: after, ...DEFAULT_BLOCKS, power: powerAfter }, SIMULATED_INFO);
    const expected = expectedSteps(consequencesOf(goal, seen, SIMULATED_INFO));
    return { plan, patch, reasons, steps, states, ready, status, counted, second, powerAfter, running, expected };
  } finally {
    await controllers.close();
  }

  function planOf(settings: Settings, now: 'started' | 'stopped'): PlannedDeed {
    const observed = controllers.observed();
    const at = { observed, driver: SIMULATED_INFO, locks: {}, target: TARGET, generation: 2 };
    return makePlan({ ...at, request, live: settings, ...DEFAULT_BLOCKS, power: now });
  }
}

test('a plan predicts what apply then does, and a second apply does nothing', async () => {
  await fc.assert(
    fc.asyncProperty(settingsArbitrary, powerArbitrary, fc.boolean(), requestArbitrary, async (...input) => {
      const [live, power, startedOnce, request] = input;
      const { plan, steps, states, ready, status, counted, second, reasons, patch, powerAfter, running, expected } =
        await planAndApply(live, power, startedOnce, request);
      const { summary } = plan;
      expect(status.converged).toBe(true);
      expect(plan.pendingRestart).toEqual([]);
      const extensions = plan.changes.filter((change) => change.path === EXTENSIONS);
      const refused = extensions.filter((change) => change.blocked);
      expect(summary.blocked).toBe(refused.length);
      if (powerAfter === 'stopped') expect(refused).toEqual(extensions);

      const stayedOn = power === 'started' && powerAfter === 'started';
      const adjusted = steps.some((step) => step.do === 'adjust');
      const restarted = stayedOn && steps.some((step) => step.do !== 'adjust');
      const reset = steps.some((step) => step.do === 'reset');

      // A predicted reset that does not happen waits for the cluster to be started.
      const deferred = plan.blastRadius.some((item) => item.what.endsWith('when it next starts'));
      expect(summary.resets).toBe(reset || deferred ? 1 : 0);
      expect(reset && deferred).toBe(false);
      expect(plan.blastRadius.some((item) => item.lost)).toBe(reset || deferred);
      expect(summary.restarts).toBe(restarted ? 1 : 0);
      expect(status.counters.restarts - counted.restarts).toBe(restarted ? 1 : 0);
      expect(reasons.length > 0 && stayedOn).toBe(restarted);
      if (stayedOn && !restarted) {
        expect(states.size === 0 || [...states].every((state) => state === ready)).toBe(true);
        const live = adjusted || extensions.length > refused.length;
        if (!deferred) expect(summary.severity).toBe(live ? 'live' : 'none');
      }
      if (!stayedOn) {
        const costs = plan.changes
          .filter((change) => change.path !== 'state' && change.path !== EXTENSIONS)
          .map((change) => change.severity);
        expect(costs.filter((cost) => cost !== 'none' && cost !== 'reset')).toEqual([]);
        if (powerAfter === power) expect(steps).toEqual([]);
      }

      // The phases that the history measures are those that the plan looks up.
      if (refused.length === 0 && !deferred && plan.changes.length > 0) {
        const kinds = steps.map(({ name, part, do: done }) => (isEngine(part) ? `engine ${done}` : name));
        expect(expected).toEqual([...new Set(kinds)].sort());
      }

      // What runs is stopped, and what exists is hidden, exactly where the plan says so.
      const stopped = steps.find((step) => step.do === 'stop' && isEngine(step.part));
      const says = (pattern: RegExp) => plan.blastRadius.some((item) => pattern.test(item.what));
      expect(says(/^stops \d+ containers?: /)).toBe(stopped !== undefined && running > 0);
      expect(says(/not visible in/)).toBe(
        steps.some((step) => isEngine(step.part) && step.part !== stopped?.part && !!stopped),
      );
      expect(says(/workloads of the cluster/)).toBe(
        steps.some((step) => step.part === 'cluster' && step.do === 'stop'),
      );

      expect(second.changes).toEqual(refused);
      if (refused.length === 0) expect(second.summary.text).toBe('nothing to change');
      if (plan.changes.every(({ path }) => path === 'state' || path === EXTENSIONS)) expect(patch).toBeUndefined();
    }),
    { numRuns: runs(400) },
  );
});

function isEngine(part: string): boolean {
  return part === 'moby' || part === 'containerd';
}
