import { expect, onTestFinished, test } from 'vitest';
import type { ClusterDriver, ClusterStatus } from '../../src/drivers/driver.ts';
import { CLUSTER_ANSWER_MS } from '../../src/reconcile/attempts.ts';
import { createControllers, IDLE_MS } from '../../src/reconcile/controllers.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { createVirtualClock } from './virtual-clock.ts';
import { settingsWith } from './worlds.ts';

const REASON = 'the node is not ready: cni plugin not initialized';

/** A loop over a simulation with another cluster. */
function loop(change: (cluster: ClusterDriver) => Partial<ClusterDriver>) {
  const clock = createVirtualClock();
  const { driver } = memorySimulation({ now: clock.now, sleep: clock.sleep });
  if (!driver.cluster) throw new Error('The simulation has a cluster.');
  const cluster = { ...driver.cluster, ...change(driver.cluster) };
  const desired = {
    settings: settingsWith(),
    ...DEFAULT_BLOCKS,
    power: 'started',
    generation: 1,
  } as const;
  const input = { driver: { ...driver, cluster }, desired, clock, random: () => 0.5, log: () => undefined };
  const controllers = createControllers(input);
  onTestFinished(() => controllers.close());
  return { clock, controllers };
}

test('a step in progress says what it waits for, and no longer once it has ended', async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { clock, controllers } = loop((cluster) => ({
    async perform(step, signal, onWait) {
      onWait?.('no node has joined');
      onWait?.(REASON);
      await held;
      return cluster.perform(step, signal);
    },
  }));
  const seen: (string | undefined)[] = [];
  controllers.onChange(({ phases }) => seen.push(phases.find(({ name }) => name === 'cluster start')?.waitingFor));
  await clock.advance(1_000);
  expect(controllers.status().phases.at(-1)).toMatchObject({ name: 'cluster start', waitingFor: REASON });
  expect(seen.filter((text) => text !== undefined)).toEqual(['no node has joined', REASON]);
  release();
  await clock.advance(IDLE_MS);
  const { converged, phases } = controllers.status();
  expect(converged).toBe(true);
  expect(phases.map(({ waitingFor }) => waitingFor)).toEqual(phases.map(() => undefined));
});

test('a cluster that was started and is not ready yet says why, also when that takes too long', async () => {
  const { clock, controllers } = loop((cluster) => ({
    async observe(signal): Promise<ClusterStatus> {
      const status = await cluster.observe(signal);
      return status.state === 'running' ? { ...status, ready: false, message: REASON } : status;
    },
  }));
  const condition = () => controllers.status().conditions.find(({ type }) => type === 'ClusterReady');
  await clock.advance(10_000);
  expect(condition()?.message).toBe(`The cluster has been started and does not respond yet: ${REASON}.`);
  await clock.advance(CLUSTER_ANSWER_MS);
  expect(condition()).toMatchObject({
    reason: 'NotReadyInTime',
    message: expect.stringContaining(`10 minutes (${REASON})`),
  });
});
