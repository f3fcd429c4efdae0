import { expect, test } from 'vitest';
import type { ClusterStatus, EngineDriver, EngineStatus, Look } from '../../src/drivers/driver.ts';
import { clusterInGuest } from '../../src/drivers/machines/qemu/cluster-in-guest.ts';
import { engineInGuest } from '../../src/drivers/machines/qemu/engine-in-guest.ts';
import { engineSpec } from '../contract/driver-suite.ts';

const NEVER = new AbortController().signal;
const CHECK_MS = 5_000;
const RUNNING: EngineStatus = {
  state: 'running',
  spec: engineSpec('moby'),
  endpoint: 'unix:///x',
  version: '1',
  workload: {},
};

/** An engine in a guest that counts how often it is observed, on a clock that the test moves. */
function scene() {
  let time = 0;
  let looks = 0;
  const world = { status: RUNNING, standsMs: 60_000, up: true, meanwhile: async () => {} };
  const reconnects: (() => Promise<void>)[] = [];
  const engine: EngineDriver = {
    async observe() {
      looks += 1;
      const seen = world.status;
      await world.meanwhile();
      return seen;
    },
    standsMs: async () => world.standsMs,
    perform: async () => undefined,
    release: async () => undefined,
  };
  const inside = engineInGuest(
    engine,
    {
      isUp: async () => world.up,
      isConnected: async () => true,
      started: async () => undefined,
      unlessHalted: (signal, work) => work(signal),
      onReconnect: (listener) => void reconnects.push(listener),
    },
    { now: () => time },
  );
  return {
    world,
    inside,
    reconnect: async () => {
      for (const listener of reconnects) await listener();
    },
    /** As the loop does for so long; returns how often the engine was observed. */
    async checks(ms: number, how: Look = 'routine') {
      const before = looks;
      for (const end = time + ms; time < end; time += CHECK_MS)
        expect(await inside.observe(NEVER, how)).toEqual(world.status);
      return looks - before;
    },
  };
}

test('an engine whose end would be noticed is queried once a minute, and at every full look', async () => {
  const { checks } = scene();
  expect(await checks(3_600_000)).toBe(60);
  expect(await checks(60_000, 'full')).toBe(12);
});

test('an engine that is stopped is queried four times an hour', async () => {
  const { world, checks } = scene();
  world.status = { state: 'stopped' };
  world.standsMs = 0;
  expect(await checks(3_600_000)).toBe(4);
});

test('once its end or another change is noticed, it is queried at the next check', async () => {
  const { world, checks } = scene();
  await checks(20_000);
  world.standsMs = 0;
  world.status = { state: 'unresponsive', message: 'not running: dockerd' };
  expect(await checks(20_000)).toBe(4);
});

test.each([
  ['a step', ({ inside }) => inside.perform({ do: 'start', spec: engineSpec('moby') }, NEVER)],
  ['a release, after which a look serves again what it serves', async ({ inside }) => inside.release?.()],
  ['a new connection to the guest', ({ reconnect }) => reconnect()],
] as [string, (made: ReturnType<typeof scene>) => Promise<void> | undefined][])(
  'nothing stands after %s',
  async (_name, change) => {
    const made = scene();
    expect(await made.checks(20_000)).toBe(1);
    await change(made);
    expect(await made.checks(20_000)).toBe(1);
    // Halfway through an observation, too.
    made.world.meanwhile = async () => {
      made.world.meanwhile = async () => {};
      await change(made);
    };
    expect(await made.checks(CHECK_MS, 'full')).toBe(1);
    expect(await made.checks(20_000)).toBe(1);
  },
);

test('nothing stands in a machine that is off', async () => {
  const { world, inside, checks } = scene();
  await checks(CHECK_MS);
  world.up = false;
  expect(await inside.observe(NEVER, 'routine')).toEqual({ state: 'stopped' });
});

test('a cluster that is stopped is queried four times an hour, and at every check one that runs, or in a guest that does not respond', async () => {
  const absent: ClusterStatus = { state: 'absent' };
  const world: { status: ClusterStatus; up: boolean; connected: boolean } = {
    status: absent,
    up: true,
    connected: true,
  };
  const reconnects: (() => Promise<void>)[] = [];
  let [time, looks] = [0, 0];
  const inside = clusterInGuest(
    {
      versions: async () => [],
      async observe() {
        looks += 1;
        return world.status;
      },
      perform: async () => undefined,
    },
    {
      isUp: async () => world.up,
      isConnected: async () => world.connected,
      started: async () => undefined,
      unlessHalted: (signal, work) => work(signal),
      onReconnect: (listener) => void reconnects.push(listener),
    },
    { now: () => time },
  );
  const checks = async (ms: number) => {
    const before = looks;
    for (const end = time + ms; time < end; time += CHECK_MS)
      expect(await inside.observe(NEVER, 'routine')).toEqual(world.status);
    return looks - before;
  };
  expect(await checks(3_600_000)).toBe(4);
  await inside.perform({ do: 'reset' }, NEVER);
  expect(await checks(20_000)).toBe(1);
  for (const listener of reconnects) await listener();
  expect(await checks(20_000)).toBe(1);
  world.connected = false;
  world.status = { state: 'unresponsive', installedVersion: '', message: 'the machine does not respond' };
  expect(await checks(20_000)).toBe(4);
  world.connected = true;
  world.up = false;
  world.status = { state: 'stopped', installedVersion: '1.32.0' };
  expect(await checks(20_000)).toBe(4);
  world.up = true;
  world.status = { state: 'unresponsive', installedVersion: '1.32.0', message: 'k3s has exited' };
  await inside.perform({ do: 'stop' }, NEVER);
  expect(await checks(20_000)).toBe(4);
});
