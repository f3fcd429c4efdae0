import { expect, test } from 'vitest';
import type {
  ClusterStatus,
  CompanionContainers,
  EngineDriver,
  ImageStore,
  MachineStatus,
} from '../../src/drivers/driver.ts';
import { qemu } from '../../src/drivers/index.ts';
import { pausable } from '../../src/drivers/machines/qemu/pause/pausable.ts';
import type { Pauses } from '../../src/drivers/machines/qemu/pause/pauses.ts';
import { pauseSupport } from '../../src/drivers/machines/qemu/support.ts';
import { RdError } from '../../src/errors.ts';
import { engineSpec, MACHINE } from '../contract/driver-suite.ts';

const signal = new AbortController().signal;
const MINUTES = 30;
const ON: MachineStatus = { state: 'on', spec: { ...MACHINE, pauseAfterMinutes: MINUTES } };
const CLUSTER_SPEC = {
  version: '1.30.2',
  port: 6443,
  traefik: true,
  flannel: true,
  spinkube: false,
  localhostOnly: false,
  engine: 'moby',
} as const;

/** A machine with an engine and a cluster, and what was asked of them, in order. */
function scene() {
  const asked: string[] = [];
  const world = {
    paused: false,
    up: true,
    limit: -1,
    machine: ON as MachineStatus,
    images: 3,
    cluster: { state: 'absent' } as ClusterStatus,
  };
  const does =
    <T>(what: string, result: () => T) =>
    async () => {
      asked.push(what);
      return result();
    };
  const pauses: Pauses = {
    current: () => (world.paused ? { since: '2026-11-24T12:00:00.000Z' } : undefined),
    async awake(work) {
      await pauses.wake();
      return work();
    },
    observe: (work, whilePaused) => (world.paused ? whilePaused() : work()),
    setLimit(ms) {
      world.limit = ms;
    },
    async wake() {
      if (world.paused) asked.push('wake');
      world.paused = false;
    },
    release: async () => undefined,
  };
  const images: ImageStore = {
    has: does('has', () => true),
    pull: does('pull', () => undefined),
    tags: does('tags', () => []),
    async open(_reference, _signal, work) {
      asked.push('open');
      return work({ labels: {}, archive: async () => undefined });
    },
  };
  const companions: CompanionContainers = {
    ensure: does('ensure', () => undefined),
    list: does('list', () => []),
    remove: does('remove', () => undefined),
  };
  const engine: EngineDriver = {
    observe: does('engine', () => ({
      state: 'running' as const,
      spec: engineSpec('moby'),
      endpoint: 'unix:///docker.sock',
      version: '26.1',
      workload: { images: world.images },
    })),
    perform: does('engine step', () => undefined),
    images,
    companions,
  };
  const parts = pausable(
    {
      machine: { observe: does('machine', () => world.machine), perform: does('machine step', () => undefined) },
      engines: { moby: engine, containerd: engine },
      cluster: {
        versions: async () => [],
        observe: does('cluster', () => world.cluster),
        perform: does('cluster step', () => undefined),
      },
    },
    pauses,
    async () => world.up,
  );
  return { world, asked, ...parts, moby: parts.engines.moby };
}

test('while the machine is paused, engine and cluster are as last observed, without a question to the guest', async () => {
  const { world, asked, moby, cluster } = scene();
  const before = [await moby.observe(signal), await cluster.observe(signal)];
  asked.length = 0;
  world.paused = true;
  world.images = 4;
  expect([await moby.observe(signal), await cluster.observe(signal)]).toEqual(before);
  expect(asked).toEqual([]);
  world.paused = false;
  expect(await moby.observe(signal)).toMatchObject({ workload: { images: 4 } });
});

test('an engine that was never observed is woken for it, and so is one whose QEMU has ended', async () => {
  const { world, asked, moby } = scene();
  world.paused = true;
  await moby.observe(signal);
  expect(asked).toEqual(['wake', 'engine']);
  world.paused = true;
  world.up = false;
  await moby.observe(signal);
  expect(asked).toEqual(['wake', 'engine', 'wake', 'engine']);
});

test('everything that needs the guest wakes it first', async () => {
  const { world, asked, machine, moby, cluster } = scene();
  const work: [string, () => Promise<unknown>][] = [
    ['machine step', () => machine.perform({ do: 'stop' }, signal)],
    ['engine step', () => moby.perform({ do: 'stop' }, signal)],
    ['cluster step', () => cluster.perform({ do: 'stop' }, signal)],
    ['has', async () => moby.images?.has('a:1', signal)],
    ['pull', async () => moby.images?.pull('a:1', signal)],
    ['tags', async () => moby.images?.tags('a', signal)],
    ['open', async () => moby.images?.open('a:1', signal, async () => undefined)],
    ['ensure', async () => moby.companions?.ensure({ id: 'a', image: 'a:1' }, signal)],
    ['list', async () => moby.companions?.list(signal)],
    ['remove', async () => moby.companions?.remove('a', signal)],
  ];
  for (const [what, perform] of work) {
    asked.length = 0;
    world.paused = true;
    await perform();
    expect(asked, what).toEqual(['wake', what]);
  }
});

test('a machine that is observed stays paused, unless it is no longer as it was left', async () => {
  const { world, asked, machine } = scene();
  world.paused = true;
  world.machine = { ...ON, paused: { since: '2026-11-24T12:00:00.000Z' } };
  expect(await machine.observe(signal)).toEqual(world.machine);
  expect(asked).toEqual(['machine']);
  const others: MachineStatus[] = [{ ...ON, halted: true, repair: 'the disk is full' }, ON, { state: 'off' }];
  for (const status of others) {
    world.paused = true;
    world.machine = status;
    await machine.observe(signal);
    expect(world.paused, JSON.stringify(status)).toBe(false);
  }
});

test.each<[string, MachineStatus, number]>([
  ['one that is on', ON, MINUTES * 60_000],
  ['one without the setting', { state: 'on', spec: MACHINE }, 0],
  ['one that needs a repair', { ...ON, repair: 'its clock is wrong' }, 0],
  ['one that is off', { state: 'off' }, 0],
  ['one that is broken', { state: 'broken', reason: 'Hung', message: 'it hangs' }, 0],
])('of all machines, %s may be paused after some time, or never', async (_, status, limit) => {
  const { world, machine } = scene();
  world.machine = status;
  await machine.observe(signal);
  expect(world.limit).toBe(limit);
});

test('a machine that cannot be observed is not paused', async () => {
  const { world, machine } = scene();
  await machine.observe(signal);
  Object.defineProperty(world, 'machine', {
    get() {
      throw new RdError('ERR_DRIVER_FAILED', 'QEMU does not respond');
    },
  });
  await expect(machine.observe(signal)).rejects.toThrow('QEMU does not respond');
  expect(world.limit).toBe(0);
});

test('a machine with a cluster that runs is never paused', async () => {
  const { world, machine, cluster } = scene();
  const running: ClusterStatus[] = [
    { state: 'running', installedVersion: '1.30.2', ready: true, spec: CLUSTER_SPEC },
    { state: 'unresponsive', installedVersion: '1.30.2', message: 'it hangs' },
  ];
  for (const status of running) {
    world.cluster = status;
    await cluster.observe(signal);
    await machine.observe(signal);
    expect(world.limit).toBe(0);
  }
  world.cluster = { state: 'stopped', installedVersion: '1.30.2' };
  await cluster.observe(signal);
  await machine.observe(signal);
  expect(world.limit).toBe(MINUTES * 60_000);
});

test('a pause is refused where nothing shows who connects, and its absence is not', () => {
  expect(pauseSupport('linux')).toEqual({ 'machine.pauseAfterMinutes': qemu.support['machine.pauseAfterMinutes'] });
  expect(pauseSupport('linux')['machine.pauseAfterMinutes'].level).toBe('enforced');
  expect(pauseSupport('darwin')).toEqual({
    'machine.pauseAfterMinutes': { level: 'unsupported', reason: expect.stringContaining('Linux'), accepts: [0] },
  });
});
