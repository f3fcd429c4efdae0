import { expect, onTestFinished, test } from 'vitest';
import type { Desired } from '../../src/reconcile/contract.ts';
import { createControllers } from '../../src/reconcile/controllers.ts';
import { createMaintenance } from '../../src/reconcile/maintenance.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { createVirtualClock } from './virtual-clock.ts';
import { settingsWith } from './worlds.ts';

test('a reset of the cluster says so while it does it, and no longer what came before', async () => {
  const clock = createVirtualClock({ auto: true });
  const { driver } = memorySimulation({ now: clock.now, sleep: clock.sleep });
  const desired: Desired = {
    settings: settingsWith(),
    ...DEFAULT_BLOCKS,
    power: 'started',
    generation: 1,
  };
  const controllers = createControllers({ driver, desired, clock, random: () => 0, log: () => undefined });
  onTestFinished(() => controllers.close());
  const nothing = async () => undefined;
  const lock = { isHeld: async () => false, read: nothing, take: nothing, release: nothing, remove: nothing };
  const input = { lock, controllers, desired: () => desired, clock, log: () => undefined };
  const maintenance = createMaintenance(input);
  const doing: (string | undefined)[] = [];
  await maintenance.run('Resetting the cluster', new AbortController().signal, async (work) => {
    work.progress('verifying the copy');
    const done = work.resetCluster();
    doing.push(maintenance.doing());
    await done;
  });
  expect([...doing, maintenance.doing()]).toEqual([
    'Resetting the cluster: deleting the data of the cluster.',
    undefined,
  ]);
});
