import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { MachineSpec } from '../../src/drivers/driver.ts';
import { adjustMachine } from '../../src/drivers/machines/qemu/live/adjust.ts';
import { isUnfinished, readFacts, roomOf, runningSpec } from '../../src/drivers/machines/qemu/live/facts.ts';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { ceilings } from '../../src/drivers/machines/qemu/start.ts';
import { memorySupport } from '../../src/drivers/machines/qemu/support.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { runs } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import {
  GIB,
  type ScriptedWorld,
  scriptedGuest,
  scriptedMonitor,
  scriptedWorld,
  wholeMemory,
} from './scripted-qemu.ts';

const never = new AbortController().signal;
const SPEC: MachineSpec = { ...MACHINE, memoryGiB: 4, cpus: 2, diskBytes: 20 * GIB };

/** A machine that is on, with time that passes only while something waits for it. */
async function scene(
  { onSleep, ...changes }: Partial<ScriptedWorld> & { onSleep?: () => void } = {},
  before: () => boolean = () => true,
) {
  const world = scriptedWorld(changes);
  const path = join(temporaryDirectory(), 'qmp');
  const server = await scriptedMonitor(world, path, before);
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  const monitor = qemuMonitor(path);
  let time = 0;
  let recorded = SPEC;
  const clock = {
    now: () => time,
    async sleep(ms: number) {
      time += ms;
      onSleep?.();
    },
  };
  const facts = () => monitor.use((qmp) => readFacts(qmp, never), never);
  return {
    world,
    facts,
    recorded: () => recorded,
    room: async () => roomOf(await facts(), Date.now() / 1000),
    running: async () => runningSpec(recorded, await facts()),
    unfinished: async () => isUnfinished(recorded, await facts()),
    adjust: (change: Partial<MachineSpec>, signal = never, progress?: () => void) =>
      adjustMachine(
        {
          progress,
          monitor,
          guest: scriptedGuest(world),
          clock,
          recorded,
          async record(change) {
            recorded = { ...recorded, ...change };
          },
        },
        { ...SPEC, ...change },
        signal,
      ),
    ordered: () => world.orders.map(({ execute }) => execute),
  };
}

describe('what can change in a running guest', () => {
  test('follows QEMU and the guest: memory down to its use, up to what fits; processors and disk only up', async () => {
    const { room } = await scene();
    expect(await room()).toEqual({
      memoryGiB: { least: 1, most: 16 },
      cpus: { least: 2, most: 4 },
      diskBytes: { least: 20 * GIB, most: 8 * 1024 * GIB },
    });
  });

  test.each<[string, Partial<ScriptedWorld>, { least: number; most: number }]>([
    ['more use', { used: 2.5 * GIB }, { least: 3, most: 16 }],
    ['use that leaves no reserve', { used: 2.9 * GIB }, { least: 4, most: 16 }],
    ['a guest that uses all', { used: 3.9 * GIB }, { least: 4, most: 16 }],
    ['a guest that has said nothing yet', { told: 0 }, { least: 4, most: 16 }],
    ['a guest that said it long ago', { told: 1_000 }, { least: 4, most: 16 }],
    ['numbers that cannot be', { used: -(2 ** 60) }, { least: 4, most: 16 }],
    ['no place for more memory', { slots: 0 }, { least: 1, most: 4 }],
    ['a QEMU that does not tell the places', { refuses: { 'qom-get': 'not found' } }, { least: 4, most: 4 }],
    ['a balloon that holds some', { held: GIB, target: GIB }, { least: 1, most: 16 }],
  ])('memory: %s', async (_what, changes, memoryGiB) => {
    const { room } = await scene(changes);
    expect(await room()).toMatchObject({ memoryGiB });
  });

  test.each<[string, Partial<ScriptedWorld>]>([
    ['less', { dimms: [{ id: 'memory0', size: 12 * GIB }] }],
    ['more', { held: 3 * GIB, target: 3 * GIB }],
  ])(
    'memory: a guest that reported its use while it had %s is not assumed to use the difference',
    async (_what, now) => {
      const before = { 'stat-total-memory': 3.9 * GIB, 'stat-available-memory': 3.5 * GIB };
      const { room } = await scene({ word: before, silentLooks: Number.POSITIVE_INFINITY, ...now });
      expect((await room()).memoryGiB.least).toBeLessThanOrEqual(2);
    },
  );

  test('memory: however old the report of the guest is, what it uses is left to it', async () => {
    const gib = (most: number) => fc.integer({ min: 2, max: most * 16 }).map((parts) => (parts * GIB) / 16);
    await fc.assert(
      fc.asyncProperty(gib(3), gib(12), gib(12), async (used, plugged, held) => {
        const { room, world } = await scene({ used, silentLooks: Number.POSITIVE_INFINITY });
        await room();
        world.dimms = [{ id: 'memory0', size: plugged }];
        world.held = Math.min(held, plugged + world.base - used);
        world.target = world.held;
        const had = (wholeMemory(world) - world.held) / GIB;
        const { least } = (await room()).memoryGiB;
        expect(least).toBeGreaterThanOrEqual(Math.min(used / GIB, Math.floor(had)));
        // A reserve, and what the kernel took at boot.
        expect(least).toBeLessThanOrEqual(Math.ceil(used / GIB + 0.5));
      }),
      { numRuns: runs(60) },
    );
  });

  test('processors: none where QEMU can add none', async () => {
    const { room } = await scene({
      cpus: 2,
      slots: 0,
      maxMemory: 4 * GIB,
      refuses: { 'query-hotpluggable-cpus': 'The feature is not enabled' },
    });
    const { cpus, memoryGiB } = await room();
    expect(cpus).toEqual({ least: 2, most: 2 });
    expect(memoryGiB.most).toBe(4);
  });

  test('is unknown when QEMU does not respond as expected', async () => {
    const { facts } = await scene({ refuses: { 'query-block': 'no' } });
    await expect(facts()).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED', message: 'QEMU refused: no' });
  });
});

test('a machine can grow to the size of its host, and is never shrunk to it', () => {
  const host = { memoryBytes: 15.6 * GIB, cpus: 2 };
  expect(ceilings({ memoryGiB: 4, cpus: 2 }, 'x86_64', host)).toEqual({ memoryCeilingGiB: 15, cpuCeiling: 4 });
  expect(ceilings({ memoryGiB: 32, cpus: 6 }, 'x86_64', host)).toEqual({ memoryCeilingGiB: 32, cpuCeiling: 6 });
  const large = { memoryBytes: 4096 * GIB, cpus: 128 };
  expect(ceilings({ memoryGiB: 4, cpus: 2 }, 'x86_64', large)).toEqual({ memoryCeilingGiB: 512, cpuCeiling: 256 });
});

test('a machine without hotplug has exactly what the profile says', () => {
  const host = { memoryBytes: 64 * GIB, cpus: 8 };
  expect(ceilings({ memoryGiB: 4, cpus: 2 }, 'aarch64', host)).toEqual({ memoryCeilingGiB: 4, cpuCeiling: 2 });
});

describe('memory of a running guest', () => {
  test('shrinks and grows by the balloon, without hotplug', async () => {
    const { adjust, running, ordered, world } = await scene();
    await adjust({ memoryGiB: 2 });
    expect(await running()).toMatchObject({ memoryGiB: 2 });
    await adjust({ memoryGiB: 4 });
    expect(await running()).toMatchObject({ memoryGiB: 4 });
    expect(ordered()).toEqual(['balloon', 'balloon']);
    expect(world.held).toBe(0);
  });

  test('that changed is reported by the guest before the step ends, so a plan made right away is true', async () => {
    const { adjust, room } = await scene({ used: 0.7 * GIB, silentLooks: 50 });
    for (const memoryGiB of [16, 2, 4]) {
      await adjust({ memoryGiB });
      expect((await room()).memoryGiB.least).toBe(1);
    }
  });

  test('can be given to a guest that never reports its use', async () => {
    const { adjust, running } = await scene({ silentLooks: Number.POSITIVE_INFINITY });
    await adjust({ memoryGiB: 6 });
    expect(await running()).toMatchObject({ memoryGiB: 6 });
  });

  test('beyond its initial size is hotplugged, also while the balloon holds some', async () => {
    const { adjust, running, world, unfinished } = await scene();
    await adjust({ memoryGiB: 6 });
    expect(world.dimms).toEqual([{ id: 'memory0', size: 2 * GIB }]);
    await adjust({ memoryGiB: 3 });
    await adjust({ memoryGiB: 7 });
    expect(world.dimms.map(({ size }) => size)).toEqual([2 * GIB, GIB]);
    expect(await running()).toMatchObject({ memoryGiB: 7 });
    expect(await unfinished()).toBe(false);
    const before = world.orders.length;
    await adjust({ memoryGiB: 7 });
    expect(world.orders.length).toBe(before);
  });

  test('that takes too long reports how far it got, and continues when asked again', async () => {
    const called = new AbortController();
    let looks = 0;
    const { adjust, running, unfinished, world } = await scene({
      clock: GIB / 64,
      onSleep: () => {
        looks += 1;
        if (looks === 32) called.abort();
      },
    });
    await expect(adjust({ memoryGiB: 2 }, called.signal)).rejects.toMatchObject({
      code: 'ERR_CANCELLED',
      message: 'the memory of the guest is still changing: 3.5 GiB now, 2 GiB requested',
      advice: expect.stringContaining('`rdctl apply`'),
    });
    expect(world.target).toBe(2 * GIB);
    expect(await unfinished()).toBe(true);
    await adjust({ memoryGiB: 2 });
    expect(await running()).toMatchObject({ memoryGiB: 2 });
    expect(await unfinished()).toBe(false);
  });

  test('that takes long reports progress, and nothing else', async () => {
    const { adjust, world } = await scene({ clock: GIB / 4, silentLooks: 1 });
    let heard = 0;
    const progress = () => {
      heard += 1;
    };
    // Eight quarters, of which the first query sees one.
    await adjust({ memoryGiB: 2 }, never, progress);
    expect(heard).toBe(7);
    await adjust({ memoryGiB: 4 }, never, progress);
    expect(heard).toBe(14);
    // Down by two quarters, and back.
    world.keeps = 3.5 * GIB;
    await expect(adjust({ memoryGiB: 3 }, never, progress)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
    expect(heard).toBe(16);
  });

  test('that the guest does not give back stays with it', async () => {
    const { adjust, running, recorded, unfinished } = await scene({ keeps: 2.5 * GIB });
    await expect(adjust({ memoryGiB: 2 })).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: 'the guest releases memory down to 2.5 GiB only, not to 2 GiB',
      advice: expect.stringContaining('It has 4 GiB now.'),
    });
    expect(await running()).toMatchObject({ memoryGiB: 4 });
    expect(recorded()).toEqual(SPEC);
    expect(await unfinished()).toBe(false);
  });

  test('that the guest needs is not taken back', async () => {
    const { adjust, world } = await scene({ used: 3 * GIB });
    await expect(adjust({ memoryGiB: 2 })).rejects.toMatchObject({
      message: expect.stringContaining('can have 4 to 16'),
    });
    expect(world.orders).toEqual([]);
  });

  test('that was plugged in but is unused counts as not done, and is used by the next attempt', async () => {
    const { adjust, unfinished, running, recorded, world } = await scene({ takesMemory: false });
    await expect(adjust({ memoryGiB: 6 })).rejects.toMatchObject({
      message: expect.stringMatching(/uses 3\.88 GiB of the 6 GiB/),
    });
    expect(recorded()).toMatchObject({ memoryGiB: 4 });
    expect(await unfinished()).toBe(true);
    expect(await running()).toMatchObject({ memoryGiB: 6 });
    await expect(adjust({ memoryGiB: 6 })).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
    world.takesMemory = true;
    await adjust({ memoryGiB: 6 });
    expect(world.dimms).toHaveLength(1);
    expect(await unfinished()).toBe(false);
  });

  test('is plugged in even when a crash left it half done', async () => {
    const { adjust, world, running } = await scene({ objects: ['memory0-host'] });
    await adjust({ memoryGiB: 5 });
    expect(await running()).toMatchObject({ memoryGiB: 5 });
    expect(world.dimms).toEqual([{ id: 'memory0', size: GIB }]);
  });
});

describe('processors of a running guest', () => {
  test('are plugged into the first free slots', async () => {
    const { adjust, world, running } = await scene();
    await adjust({ cpus: 4 });
    expect(world.orders.map(({ arguments: given }) => given)).toEqual(
      [2, 3].map((core) => expect.objectContaining({ driver: 'max-x86_64-cpu', 'core-id': core })),
    );
    expect(await running()).toMatchObject({ cpus: 4 });
  });

  test('are never removed, nor added beyond the slots', async () => {
    const { adjust, world } = await scene({ cpus: 3 });
    await expect(adjust({ cpus: 2 })).rejects.toMatchObject({
      message: expect.stringContaining('can have 3 to 4 proc'),
    });
    await expect(adjust({ cpus: 5 })).rejects.toMatchObject({ message: expect.stringContaining(', not 5') });
    expect(world.orders).toEqual([]);
  });

  test('that the guest does not bring online count as not done', async () => {
    const { adjust, recorded, unfinished, world } = await scene({ online: 2 });
    await expect(adjust({ cpus: 3 })).rejects.toMatchObject({ message: 'the guest uses 2 of 3 processors' });
    expect(recorded()).toMatchObject({ cpus: 2 });
    expect(await unfinished()).toBe(true);
    world.online = 3;
    await adjust({ cpus: 3 });
    expect(await unfinished()).toBe(false);
    expect(world.cpus).toBe(3);
  });
});

describe('the disk of a running guest', () => {
  test('grows together with its file system', async () => {
    const { adjust, world, running } = await scene();
    await adjust({ diskBytes: 30 * GIB });
    expect(world).toMatchObject({ disk: 30 * GIB, fileSystem: 30 * GIB });
    expect(await running()).toMatchObject({ diskBytes: 30 * GIB });
  });

  test('is never told to shrink: a larger one is enough', async () => {
    const { adjust, world, unfinished, recorded } = await scene({ disk: 40 * GIB });
    expect(await unfinished()).toBe(true);
    await adjust({ diskBytes: 30 * GIB });
    expect(world.orders).toEqual([]);
    // An earlier crash may have left the file system smaller.
    expect(world.fileSystem).toBe(40 * GIB);
    expect(recorded().diskBytes).toBe(40 * GIB);
    expect(await unfinished()).toBe(false);
  });
});

test('one failed change does not block the others, and every reason is reported', async () => {
  const { adjust, running, recorded } = await scene({ online: 2, refuses: { block_resize: 'the node is busy' } });
  await expect(adjust({ memoryGiB: 3, cpus: 3, diskBytes: 30 * GIB })).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: 'QEMU refused: the node is busy; the guest uses 2 of 3 processors',
  });
  expect(recorded()).toEqual({ ...SPEC, memoryGiB: 3 });
  expect(await running()).toMatchObject({ memoryGiB: 3, diskBytes: 20 * GIB });
});

test('a change that is canceled while it waits is continued by the next attempt', async () => {
  const abort = new AbortController();
  let looks = 0;
  const { adjust, running, unfinished } = await scene({ clock: GIB / 8 }, () => {
    looks += 1;
    if (looks === 30) abort.abort();
    return true;
  });
  await expect(adjust({ memoryGiB: 2 }, abort.signal)).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  expect(await unfinished()).toBe(true);
  await adjust({ memoryGiB: 2 });
  expect(await running()).toMatchObject({ memoryGiB: 2 });
  expect(await unfinished()).toBe(false);
});

test('wherever a change is interrupted, the next attempt completes, and nothing is removed or cut off', async () => {
  const changes = fc.record({
    memoryGiB: fc.integer({ min: 1, max: 8 }),
    cpus: fc.integer({ min: 2, max: 4 }),
    diskBytes: fc.integer({ min: 20, max: 24 }).map((gib) => gib * GIB),
  });
  const turns = fc.array(fc.record({ change: changes, breaksAt: fc.nat({ max: 60 }) }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(turns, changes, async (broken, last) => {
      let left = Number.POSITIVE_INFINITY;
      const { adjust, world, running, unfinished, facts } = await scene({}, () => {
        left -= 1;
        return left >= 0;
      });
      const disks = () => world.orders.filter(({ execute }) => execute === 'block_resize');
      for (const { change, breaksAt } of broken) {
        left = breaksAt;
        const ends = await adjust(change).then(
          () => true,
          () => false,
        );
        left = Number.POSITIVE_INFINITY;
        if (ends) expect(await unfinished()).toBe(false);
      }
      const found = await facts();
      const goal = { ...last, cpus: Math.max(last.cpus, found.cpus.count) };
      await adjust(goal);
      expect(await running()).toMatchObject({ ...goal, diskBytes: Math.max(goal.diskBytes, found.diskBytes) });
      expect(await unfinished()).toBe(false);
      expect(wholeMemory(world)).toBeLessThanOrEqual(8 * GIB);
      expect(world.fileSystem).toBe(world.disk);
      const sizes = disks().map(({ arguments: given }) => Number(given?.size));
      expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
      expect(world.orders.filter(({ execute }) => execute === 'device_del')).toEqual([]);
    }),
    { numRuns: runs(40) },
  );
});

test('the driver offers no more memory than this host has, and says so', () => {
  const { 'virtualMachine.memoryInGB': support } = memorySupport(7.7 * GIB);
  expect(support).toMatchObject({
    level: 'enforced',
    most: 7,
    reason: expect.stringMatching(/^this computer has 7 GiB of memory; /),
  });
});
