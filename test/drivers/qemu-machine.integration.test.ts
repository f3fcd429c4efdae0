import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { MachineSpec } from '../../src/drivers/driver.ts';
import { imageStore } from '../../src/drivers/guest-images/store.ts';
import type { QemuHost } from '../../src/drivers/machines/qemu/arguments.ts';
import { UNCONFINED } from '../../src/drivers/machines/qemu/confine/confinement.ts';
import type { Connection } from '../../src/drivers/machines/qemu/guest.ts';
import { hostPortFilter } from '../../src/drivers/machines/qemu/host-ports/filter.ts';
import type { HostSockets } from '../../src/drivers/machines/qemu/host-ports/open-ports.ts';
import { filterRules } from '../../src/drivers/machines/qemu/host-ports/rules.ts';
import { type QemuMachine, qemuMachine } from '../../src/drivers/machines/qemu/machine.ts';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { readQemuRecord, writeQemuRecord } from '../../src/drivers/machines/qemu/record.ts';
import { RdError } from '../../src/errors.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { sampleImage } from './guest-images/guest-image.ts';
import { GIB, HOST, isOrder, scriptedGuest, scriptedMonitor, scriptedWorld } from './scripted-qemu.ts';

const signal = new AbortController().signal;

/** A machine that is on: an idle program in place of QEMU, with a scripted monitor and guest. */
async function scene(host: QemuHost = HOST) {
  const directory = temporaryDirectory();
  const places = qemuPlaces(directory, '/nowhere');
  mkdirSync(places.run);
  const said: string[] = [];
  const vm = scriptedWorld({ base: MACHINE.memoryGiB * GIB, cpus: MACHINE.cpus, disk: MACHINE.diskBytes });
  const sockets: HostSockets = { listening: [], clientPorts: [32_768, 60_999] };
  const world = { ...vm, connected: true, time: 0, clockOff: 0, way: 'none', sockets };
  const pause: { since?: string } = {};
  const programs = scriptedGuest(world);
  const home: { repair?: string; broken?: string } = {};
  const monitor = await scriptedMonitor(world, places.monitor, (command) => {
    if (isOrder(command)) said.push(command);
    return true;
  });
  const logFile = join(directory, 'qemu.log');
  const images = imageStore(join(directory, 'images'));
  // Unlike those of another run of these tests.
  const argv = ['sleep', '1000', `0.${process.pid}`];
  await startDaemon({ argv, recordFile: places.qemuRecord, logFile, env: process.env });
  onTestFinished(async () => {
    await stopDaemon(places.qemuRecord, { graceMs: 1_000, clock: steadyClock });
    await new Promise((resolve) => monitor.close(resolve));
  });
  const record = { spec: MACHINE, image: 'sha256:0', sshPort: 1, accelerator: 'tcg', booted: true } as const;
  await writeQemuRecord(places.record, { ...record, power: 'on' });
  const guest: Connection = {
    async run([program = '', ...args], options) {
      if (program === 'systemctl') {
        said.push([program, ...args].join(' '));
        return { exitCode: 0, stdout: '', stderr: '' };
      }
      const shifts = args.includes('shift');
      if (program !== 'date' && !shifts) return programs.run([program, ...args], options);
      if (shifts) {
        said.push('date');
        world.clockOff = 0;
      }
      return { exitCode: 0, stdout: `${Math.floor(Date.now() / 1000) - world.clockOff}\n`, stderr: '' };
    },
    async *stream() {},
    converse: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'nothing converses')),
    forward: async () => '',
    connect: async () => undefined,
    isConnected: async () => world.connected,
    sessions: () => 0,
    onReconnect: () => undefined,
    close: async () => undefined,
  };
  const machine = qemuMachine({
    places,
    logFile,
    images,
    host,
    run: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'no program is scripted')),
    environment: {},
    guest,
    confine: UNCONFINED,
    mounts: {
      opened: async () => [],
      observe: async () => ({ shared: { path: '/home/u', by: 'reverse-sshfs', mounts: [] }, asked: {}, ...home }),
      mount: async () => undefined,
      async change() {
        if (home.repair !== undefined) said.push('mount');
        delete home.repair;
      },
      begin: async () => [],
      unmount: async () => undefined,
      connections: async () => [],
      blocksMigration: async () => undefined,
      end: async () => void said.push('end of the mounts'),
    },
    monitor: qemuMonitor(places.monitor),
    ports: {
      watch({ route, binding }) {
        world.way = `${route} ${binding}`;
      },
      async switchTo({ route, binding }) {
        said.push(`ports by ${route} at ${binding}`);
      },
      async forget() {
        world.way = 'none';
      },
    },
    hostPorts: hostPortFilter({
      guest,
      hostSockets: async () => world.sockets,
      published: () => [],
      log: () => undefined,
    }),
    accelerator: async () => ({ accelerator: 'tcg', emulatedBecause: 'no KVM' }),
    freezes: true,
    pause: () => (pause.since === undefined ? undefined : { since: pause.since }),
    clock: {
      now: () => world.time,
      async sleep(ms) {
        world.time += ms;
        // The program in place of QEMU is a real one and exits in real time.
        await steadyClock.sleep(1);
      },
    },
    log: () => undefined,
  });
  return {
    images,
    places,
    record,
    world,
    home,
    pause,
    said,
    machine,
    adjust: () => machine.perform({ do: 'adjust', spec: MACHINE }, signal),
  };
}

async function expectOn(machine: { observe: QemuMachine['observe'] }): Promise<void> {
  const seen = await machine.observe(signal);
  expect(seen).toMatchObject({ state: 'on', spec: MACHINE });
  expect(seen).not.toHaveProperty('repair');
}

test('a machine that runs and answers is on, and is left alone', async () => {
  const { machine, adjust, said } = await scene();
  await expectOn(machine);
  await adjust();
  expect(said).toEqual([]);
});

test('a guest that QEMU has halted continues, unless the cause is still there', async () => {
  const { machine, adjust, world, said } = await scene();
  world.status = 'io-error';
  world.cont = 'io-error';
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', repair: expect.stringContaining('full') });
  expect(await machine.answers(signal)).toBe(false);
  await expect(adjust()).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED', advice: expect.stringContaining('space') });
  world.cont = 'running';
  await adjust();
  expect(said).toEqual(['cont', 'cont', 'cont']);
  await expectOn(machine);
  world.status = 'paused';
  expect(await machine.observe(signal)).toMatchObject({
    state: 'on',
    repair: expect.stringContaining('paused from outside'),
  });
  // Freed space is not announced, and no retry is due by then: an observation is enough.
  world.status = 'io-error';
  world.clockOff = 3_600;
  expect(await machine.observe(signal)).not.toHaveProperty('repair');
  expect(said.slice(3)).toEqual(['cont', 'date']);
  expect(world.clockOff).toBe(0);
  await machine.observe(signal);
  expect(said).toHaveLength(5);
});

test('a write that fails for a reason other than space halts the guest, too, and is not called a full disk', async () => {
  const { machine, adjust, world } = await scene();
  Object.assign(world, { status: 'io-error', cont: 'io-error', writes: 'failed' });
  const reason = expect.stringMatching(/failed disk write.* failing, or a quota/);
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', repair: reason });
  await expect(adjust()).rejects.toMatchObject({ message: reason, advice: expect.stringContaining('kernel') });
  world.writes = 'nospace';
  expect(await machine.observe(signal)).toMatchObject({ repair: expect.stringContaining('full') });
});

test('a guest on a computer whose last start took long gets more time before it counts as broken', async () => {
  const { machine, places, record, world } = await scene();
  const started = { how: 'boot', phases: [{ name: 'boot', ms: 40_000 }] } as const;
  await writeQemuRecord(places.record, { ...record, started, power: 'on' });
  world.connected = false;
  await expect(machine.observe(signal)).rejects.toMatchObject({
    message: 'the guest does not respond',
    advice: 'The machine is restarted if this lasts longer than 120 seconds.',
  });
  world.time += 119_000;
  await expect(machine.observe(signal)).rejects.toMatchObject({
    message: 'the guest does not respond (for 119 s now)',
  });
  world.time += 2_000;
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'GuestUnreachable' });
});

test('a guest that does not respond gets time before it counts as broken', async () => {
  const { machine, world } = await scene();
  world.connected = false;
  await expect(machine.observe(signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  world.time += 59_000;
  await expect(machine.observe(signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  world.time += 2_000;
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'GuestUnreachable' });
  world.connected = true;
  expect(await machine.observe(signal)).toMatchObject({ state: 'on' });
  world.connected = false;
  await expect(machine.observe(signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  // It could not answer while it was halted.
  world.status = 'paused';
  await machine.observe(signal);
  world.status = 'running';
  world.time += 61_000;
  await expect(machine.observe(signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
});

test('a paused machine is on, and is looked at without its guest', async () => {
  const { machine, world, pause, home, said } = await scene();
  await expectOn(machine);
  // Its guest reported its memory before the pause, an hour ago.
  world.told = Date.now() / 1000 - 3_600;
  world.silentLooks = Number.POSITIVE_INFINITY;
  pause.since = new Date(world.told * 1000 + 10_000).toISOString();
  world.status = 'paused';
  world.connected = false;
  home.repair = 'it is not mounted';
  world.clockOff = 3_600;
  const found = await machine.observe(signal);
  expect(found).toMatchObject({
    state: 'on',
    spec: MACHINE,
    paused: { since: pause.since },
    shared: { path: '/home/u' },
    room: { memoryGiB: { least: 1, most: 16 } },
  });
  expect(found).not.toHaveProperty('repair');
  expect(found).not.toHaveProperty('halted');
  expect(said).toEqual([]);
  // A disk that is full, or someone else's `cont`, ends what this process calls a pause.
  Object.assign(world, { status: 'io-error', cont: 'io-error' });
  expect(await machine.observe(signal)).toMatchObject({ halted: true, repair: expect.stringContaining('full') });
});

test('the time until a pause changes without a restart', async () => {
  const { machine, places, said } = await scene();
  const spec = { ...MACHINE, pauseAfterMinutes: 30 };
  await machine.perform({ do: 'adjust', spec }, signal);
  expect(await machine.observe(signal)).toMatchObject({ spec });
  expect(await readQemuRecord(places.record)).not.toHaveProperty('adjusted');
  await machine.perform({ do: 'start', spec: MACHINE }, signal);
  expect(await machine.observe(signal)).toMatchObject({ spec: MACHINE });
  expect(said).toEqual([]);
});

test('a machine of an earlier release, which knew of no pause, is adopted as it is', async () => {
  const { machine, places, record } = await scene();
  const { mounts, hostPorts, pauseAfterMinutes, ...spec } = MACHINE;
  writeFileSync(places.record, JSON.stringify({ ...record, spec, power: 'on' }));
  expect({ mounts, hostPorts, pauseAfterMinutes }).toEqual({ mounts: {}, hostPorts: [], pauseAfterMinutes: 0 });
  await expectOn(machine);
});

test('a stopped clock is detected periodically, and set', async () => {
  const { machine, adjust, world, said } = await scene();
  await expectOn(machine);
  world.clockOff = 3_600;
  await expectOn(machine);
  world.time += 61_000;
  expect(await machine.observe(signal)).toMatchObject({ repair: expect.stringContaining('clock') });
  await adjust();
  expect(said).toEqual(['date']);
  await expectOn(machine);
});

describe('memory, processors and disk', () => {
  const change = (machine: QemuMachine, spec: Partial<MachineSpec>) =>
    machine.perform({ do: 'adjust', spec: { ...MACHINE, ...spec } }, signal);

  test('change while the machine runs, which reports progress and records the new size', async () => {
    const { machine, places, said } = await scene();
    const wanted = { memoryGiB: 3, cpus: 3, diskBytes: 20 * GIB };
    expect(await machine.observe(signal)).toMatchObject({
      room: { memoryGiB: { least: 1, most: 16 }, cpus: { least: 2, most: 4 }, diskBytes: { least: 10 * GIB } },
    });
    expect(await readQemuRecord(places.record)).not.toHaveProperty('adjusted');
    await change(machine, wanted);
    const found = await machine.observe(signal);
    expect(found).toMatchObject({ state: 'on', spec: { ...MACHINE, ...wanted }, room: { cpus: { least: 3 } } });
    expect(found).not.toHaveProperty('repair');
    expect(await readQemuRecord(places.record)).toMatchObject({ adjusted: true, spec: wanted });
    expect(said).toEqual(['block_resize', 'device_add', 'object-del', 'object-add', 'device_add', 'balloon']);
    await change(machine, wanted);
    expect(said).toHaveLength(6);
  });

  test('are what QEMU reports: an interrupted change is visible, and gets completed', async () => {
    const { machine, world } = await scene();
    world.target = GIB / 2;
    const found = await machine.observe(signal);
    expect(found).toMatchObject({ spec: { memoryGiB: 1.5 }, repair: expect.stringContaining('incomplete') });
    await change(machine, {});
    expect(await machine.observe(signal)).toMatchObject({ spec: MACHINE });
    expect(await machine.observe(signal)).not.toHaveProperty('repair');
  });

  test('are shown with the accelerator, and the reason when it is not KVM', async () => {
    const { machine, places, record } = await scene();
    await writeQemuRecord(places.record, { ...record, power: 'on', emulatedBecause: 'there is none' });
    expect(await machine.observe(signal)).toMatchObject({ accelerator: 'tcg', emulatedBecause: 'there is none' });
    await writeQemuRecord(places.record, { ...record, power: 'on', accelerator: 'kvm' });
    const found = await machine.observe(signal);
    expect(found).toMatchObject({ accelerator: 'kvm' });
    expect(found).not.toHaveProperty('emulatedBecause');
  });

  test('a file system that did not grow at boot is reported until it has grown', async () => {
    const { machine, world, places, record } = await scene();
    const flaw = 'the file system is too small';
    await writeQemuRecord(places.record, { ...record, power: 'on', flaw });
    expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: MACHINE, flaw });
    await change(machine, { memoryGiB: 3 });
    expect(await machine.observe(signal)).toMatchObject({ flaw });
    world.growsNot = 'resize2fs: There are errors in the filesystem';
    const wanted = { memoryGiB: 3, diskBytes: 2 * MACHINE.diskBytes };
    await expect(change(machine, wanted)).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message:
        'the file system of the data disk does not grow to 20 GiB: resize2fs: There are errors in the filesystem',
      advice: expect.stringContaining('rdctl start'),
    });
    expect(await machine.observe(signal)).toMatchObject({ flaw, repair: expect.stringContaining('incomplete') });
    world.growsNot = '';
    await change(machine, wanted);
    expect(world.fileSystem).toBe(wanted.diskBytes);
    const found = await machine.observe(signal);
    expect(found).toMatchObject({ spec: wanted });
    expect(found).not.toHaveProperty('flaw');
  });

  test('a file system that grows for minutes delays nothing, and is reported until it has grown', async () => {
    const { machine, world, places } = await scene();
    world.growth = GIB;
    const wanted = { diskBytes: 1024 * GIB };
    await change(machine, wanted);
    const record = await readQemuRecord(places.record);
    expect(record).toMatchObject({ spec: wanted, growing: true, adjusted: true });
    const found = await machine.observe(signal);
    expect(found).toMatchObject({
      spec: wanted,
      flaw: expect.stringMatching(/has \d+ GiB of 1024 GiB and is still growing/),
    });
    expect(found).not.toHaveProperty('repair');
    world.growth = Number.POSITIVE_INFINITY;
    expect(await machine.observe(signal)).not.toHaveProperty('flaw');
    // A larger disk means another growth.
    world.growth = GIB;
    await change(machine, { diskBytes: 2048 * GIB });
    expect(await machine.observe(signal)).toMatchObject({ flaw: expect.stringContaining('of 2048 GiB') });
    world.growsNot = 'resize2fs: No space left on device';
    expect(await machine.observe(signal)).toMatchObject({
      flaw: expect.stringContaining('did not grow (resize2fs: No'),
    });
  });

  test('that the guest cannot change live are refused, and never a reason to stop it', async () => {
    const { machine, world, said } = await scene();
    await expect(change(machine, { cpus: 1 })).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
    world.used = 1.5 * GIB;
    delete world.word;
    await expect(change(machine, { memoryGiB: 1 })).rejects.toMatchObject({
      message: 'the running machine can have 2 to 16 GiB of memory, not 1',
    });
    expect(said).toEqual([]);
    await expectOn(machine);
  });

  test('that the kernel of the guest cannot use are not offered, and refused', async () => {
    const { machine, places } = await scene();
    const record = await readQemuRecord(places.record);
    if (record === undefined || record === 'damaged') throw new Error('the scene has no record');
    await writeQemuRecord(places.record, { ...record, possibleCpus: 3 });
    expect(await machine.observe(signal)).toMatchObject({ room: { cpus: { least: 2, most: 3 } } });
    await expect(change(machine, { cpus: 4 })).rejects.toMatchObject({
      message: 'the running machine can have 2 to 3 processors, not 4',
    });
    await change(machine, { cpus: 3 });
  });

  test('are also reported for a halted guest', async () => {
    const { machine, world } = await scene();
    world.status = 'io-error';
    expect(await machine.observe(signal)).toMatchObject({ spec: MACHINE, room: { cpus: { most: 4 } } });
  });
});

test('a QEMU that stops answering is broken after a while, and killed by its pid', async () => {
  const { machine, places, world } = await scene();
  world.hangs = ['query-status', 'quit'];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  // One that waits for a slow disk, or whose monitor is in use, is silent for a while, too.
  await expect(hurried(machine.observe(signal))).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: 'QEMU does not respond',
  });
  world.hangs = [];
  expect(await hurried(machine.observe(signal))).toMatchObject({ state: 'on' });
  world.hangs = ['query-status', 'quit'];
  await expect(hurried(machine.observe(signal))).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  world.time += 59_000;
  await expect(hurried(machine.observe(signal))).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
  world.time += 2_000;
  expect(await hurried(machine.observe(signal))).toMatchObject({
    state: 'broken',
    reason: 'NotRunning',
    message: 'QEMU does not respond',
  });
  await hurried(machine.perform({ do: 'stop' }, signal));
  expect(await findDaemon(places.qemuRecord)).toEqual({ state: 'none' });
  expect(await machine.observe(signal)).toEqual({ state: 'off' });
});

/** Lets time limits pass while everything else takes real time. */
async function hurried<T>(work: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  work.then(end, end);
  while (!done) {
    await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(20);
  }
  return work;
}

test('a home mount that is missing in the guest is restored without a stop; one that cannot be causes a restart', async () => {
  const { machine, adjust, home, said } = await scene();
  expect(await machine.observe(signal)).toMatchObject({
    state: 'on',
    shared: { path: '/home/u', by: 'reverse-sshfs' },
  });
  home.repair = '/home/u of this host is not mounted in the machine';
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', repair: home.repair });
  await adjust();
  expect(said).toEqual(['mount']);
  expect(await machine.observe(signal)).toMatchObject({ state: 'on' });
  expect(await machine.observe(signal)).not.toHaveProperty('repair');
  home.broken = 'virtiofsd has ended';
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'SharedDirectoryGone' });
});

test('an unfinished start and a damaged record are broken; a QEMU that is gone is off', async () => {
  const { machine, places, record } = await scene();
  await writeQemuRecord(places.record, { ...record, power: 'on', booted: false });
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'StartUnfinished' });
  expect(await machine.isUp()).toBe(false);
  writeFileSync(places.record, '{');
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'RecordDamaged' });
  await writeQemuRecord(places.record, { ...record, power: 'on' });
  await stopDaemon(places.qemuRecord, { graceMs: 1_000, clock: steadyClock });
  expect(await machine.observe(signal)).toEqual({ state: 'off' });
});

test.each(['none', 'off'])(
  'a QEMU that its record does not mention (%s) is broken, and killed before another starts',
  async (kind) => {
    const { machine, places, record } = await scene();
    if (kind === 'off') await writeQemuRecord(places.record, { ...record, power: 'off', booted: false });
    else rmSync(places.record);
    expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'RecordGone' });
    await machine.perform({ do: 'stop' }, signal);
    expect(await findDaemon(places.qemuRecord)).toEqual({ state: 'none' });
    expect(['off', 'absent']).toContain((await machine.observe(signal)).state);
  },
);

test('a machine boots no image of another architecture, selected or alone', async () => {
  const { machine, images } = await scene();
  await machine.perform({ do: 'stop' }, signal);
  const start = () => machine.perform({ do: 'start', spec: MACHINE }, signal);
  const foreign = await sampleImage(images, 'arm', '2026-11-02T12:00:00.000Z', 'aarch64');
  const refusal = {
    code: 'ERR_DRIVER_TERMINAL',
    message: 'the guest image debian-arm is for aarch64, and machines on this computer are x86_64',
  };
  await expect(start()).rejects.toMatchObject(refusal);
  await sampleImage(images);
  await images.select(foreign);
  await expect(start()).rejects.toMatchObject(refusal);
});

test('a guest without a power button is told to power down', async () => {
  const { machine, said } = await scene({ platform: 'linux', architecture: 'aarch64' });
  await machine.perform({ do: 'stop' }, signal);
  expect(said).toEqual(['systemctl --no-block poweroff', 'quit', 'end of the mounts']);
});

test('a guest that ignores the power button is killed after a limit, and its record says that it is off', async () => {
  const { machine, said, world } = await scene();
  await machine.perform({ do: 'stop' }, signal);
  expect(said).toEqual(['system_powerdown', 'quit', 'end of the mounts']);
  expect(world.time).toBeLessThan(70_000);
  expect(await machine.observe(signal)).toEqual({ state: 'off' });
  await machine.perform({ do: 'stop' }, signal);
});

test.each([
  ['paused', 'running', ['cont', 'system_powerdown']],
  ['io-error', 'running', ['cont', 'system_powerdown']],
  ['io-error', 'io-error', ['cont']],
])('a halted guest (%s) that continues (%s) writes its data before it ends', async (status, cont, expected) => {
  const { machine, said, world } = await scene();
  Object.assign(world, { status, cont });
  await machine.perform({ do: 'stop' }, signal);
  expect(said).toEqual([...expected, 'quit', 'end of the mounts']);
  expect(await machine.observe(signal)).toEqual({ state: 'off' });
});

test('without an image a start fails, and says how to get one', async () => {
  const { machine } = await scene();
  await machine.perform({ do: 'stop' }, signal);
  await expect(machine.perform({ do: 'start', spec: MACHINE }, signal)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    advice: expect.stringContaining('rdctl image build'),
  });
});

test('the port forwarding method follows the settings at every observation, switches while the guest runs, and ends with the machine', async () => {
  const { machine, world, said } = await scene();
  await machine.observe(signal);
  expect(world.way).toBe('ssh loopback');
  await machine.perform({ do: 'adjust', spec: { ...MACHINE, sshPortForwarder: false } }, signal);
  expect(said).toEqual(['ports by qemu at loopback']);
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: { sshPortForwarder: false } });
  expect(world.way).toBe('qemu loopback');
  await machine.perform({ do: 'adjust', spec: { ...MACHINE, sshPortForwarder: false } }, signal);
  expect(said).toEqual(['ports by qemu at loopback']);
  await machine.perform({ do: 'start', spec: { ...MACHINE, adminAccess: true } }, signal);
  expect(said.at(-1)).toBe('ports by ssh at all');
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: { adminAccess: true } });
  expect(world.way).toBe('ssh all');
  await machine.perform({ do: 'stop' }, signal);
  expect(world.way).toBe('none');
});

describe('the loopback interface of this host', () => {
  const web = { protocol: 'tcp', address: '0.0.0.0', port: 8000 } as const;
  const spec = { ...MACHINE, hostPorts: ['5432'] };

  test('is closed at the first observation, and what this host offers to everyone is open', async () => {
    const { machine, world } = await scene();
    expect(await machine.observe(signal)).toMatchObject({ openHostPorts: { tcp: [], udp: [] } });
    world.sockets = { ...world.sockets, listening: [web] };
    expect(await machine.observe(signal)).toMatchObject({ openHostPorts: { tcp: ['8000'], udp: [] } });
    await machine.observe(signal);
    expect(world.filters).toEqual([filterRules({ tcp: [], udp: [] }), filterRules({ tcp: ['8000'], udp: [] })]);
  });

  test('opens and closes ports while the machine runs, also in a second attempt', async () => {
    const { machine, world } = await scene();
    await machine.perform({ do: 'adjust', spec }, signal);
    expect(await machine.observe(signal)).toMatchObject({ spec, openHostPorts: { tcp: ['5432'], udp: ['5432'] } });
    world.filtersNot = 'it has none';
    await expect(machine.perform({ do: 'adjust', spec: MACHINE }, signal)).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: expect.stringContaining('it has none'),
    });
    const seen = await machine.observe(signal);
    expect(seen).toMatchObject({ state: 'on', repair: expect.stringContaining('it has none') });
    expect(seen).not.toHaveProperty('openHostPorts');
    world.filtersNot = '';
    await machine.perform({ do: 'adjust', spec: MACHINE }, signal);
    await expectOn(machine);
    expect(world.filters.at(-1)).toBe(filterRules({ tcp: [], udp: [] }));
  });

  test('is closed also in a machine that an earlier release started', async () => {
    const { machine, places, record, world } = await scene();
    const { mounts: _mounts, hostPorts: _hostPorts, pauseAfterMinutes: _minutes, ...spec } = record.spec;
    writeFileSync(places.record, JSON.stringify({ ...record, spec, power: 'on' }));
    await expectOn(machine);
    expect(world.filters).toEqual([filterRules({ tcp: [], udp: [] })]);
  });

  test('is no reason to restart a machine that runs', async () => {
    const { machine, world, said } = await scene();
    await machine.perform({ do: 'start', spec }, signal);
    expect(world.filters.at(-1)).toBe(filterRules({ tcp: ['5432'], udp: ['5432'] }));
    expect(said).toEqual([]);
  });
});
