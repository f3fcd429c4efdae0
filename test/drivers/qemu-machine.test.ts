import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Connection } from '../../src/drivers/machines/qemu/guest.ts';
import { qemuMachine } from '../../src/drivers/machines/qemu/machine.ts';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { writeQemuRecord } from '../../src/drivers/machines/qemu/record.ts';
import { RdError } from '../../src/errors.ts';
import { imageStore } from '../../src/guest-images/store.ts';
import { startDaemon, stopDaemon } from '../../src/process/daemon.ts';
import { realPace } from '../../src/process/pace.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const signal = new AbortController().signal;

/** A machine that is on: a program that does nothing in the place of QEMU, with a monitor and a guest that say what they are told to. */
async function scene() {
  const directory = temporaryDirectory();
  const places = qemuPlaces(directory, '/nowhere');
  mkdirSync(places.run);
  const said: string[] = [];
  const world = { status: 'running', cont: 'running', connected: true, time: 0, clockOff: 0, way: 'none' };
  const monitor = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('{"QMP": {}}\n');
    socket.on('data', (data: Buffer) => {
      for (const line of data.toString().split('\n').filter(Boolean)) {
        const { execute, id }: { execute: string; id: number } = JSON.parse(line);
        if (execute === 'cont') world.status = world.cont;
        if (!['qmp_capabilities', 'query-status'].includes(execute)) said.push(execute);
        socket.write(`${JSON.stringify({ id, return: execute === 'query-status' ? { status: world.status } : {} })}\n`);
      }
    });
  });
  await new Promise<void>((resolve) => monitor.listen(places.monitor, resolve));
  const logFile = join(directory, 'qemu.log');
  const argv = ['sleep', '1000', '0'];
  await startDaemon({ argv, recordFile: places.qemuRecord, logFile, env: process.env });
  onTestFinished(async () => {
    await stopDaemon(places.qemuRecord, { graceMs: 1_000, pace: realPace });
    await new Promise((resolve) => monitor.close(resolve));
  });
  const record = { spec: MACHINE, image: 'sha256:0', sshPort: 1, accelerator: 'tcg', booted: true } as const;
  await writeQemuRecord(places.record, { ...record, power: 'on' });
  const guest: Connection = {
    async run([program = '', ...args]) {
      if (program !== 'date') throw new RdError('ERR_DRIVER_FAILED', `${program} is not scripted`);
      if (args.includes('-s')) {
        said.push('date');
        world.clockOff = 0;
      }
      return { exitCode: 0, stdout: `${Math.floor(Date.now() / 1000) - world.clockOff}\n`, stderr: '' };
    },
    async *stream() {},
    forward: async () => '',
    connect: async () => undefined,
    isConnected: async () => world.connected,
    onReconnect: () => undefined,
    close: async () => undefined,
  };
  const machine = qemuMachine({
    places,
    logFile,
    images: imageStore(join(directory, 'images')),
    run: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'no program is scripted')),
    environment: {},
    guest,
    monitor: qemuMonitor(places.monitor),
    ports: {
      look(way) {
        world.way = way;
      },
      async use(way) {
        said.push(`ports by ${way}`);
      },
      async forget() {
        world.way = 'none';
      },
    },
    accelerator: async () => 'tcg',
    freezes: true,
    pace: {
      now: () => world.time,
      async sleep(ms) {
        world.time += ms;
      },
    },
    log: () => undefined,
  });
  return {
    places,
    record,
    world,
    said,
    machine,
    adjust: () => machine.perform({ do: 'adjust', spec: MACHINE }, signal),
  };
}

test('a machine that runs and answers is on, and is left alone', async () => {
  const { machine, adjust, said } = await scene();
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: MACHINE });
  await adjust();
  expect(said).toEqual([]);
});

test('a guest that QEMU has halted goes on, unless what halted it is still there', async () => {
  const { machine, adjust, world, said } = await scene();
  world.status = 'io-error';
  world.cont = 'io-error';
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', repair: expect.stringContaining('full') });
  expect(await machine.answers(signal)).toBe(false);
  await expect(adjust()).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED', advice: expect.stringContaining('room') });
  world.cont = 'running';
  await adjust();
  expect(said).toEqual(['cont', 'cont']);
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: MACHINE });
});

test('a guest that does not answer is given time before it counts as broken', async () => {
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
});

test('a clock that stood still is looked for now and then, and set', async () => {
  const { machine, adjust, world, said } = await scene();
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: MACHINE });
  world.clockOff = 3_600;
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: MACHINE });
  world.time += 61_000;
  expect(await machine.observe(signal)).toMatchObject({ repair: expect.stringContaining('clock') });
  await adjust();
  expect(said).toEqual(['date']);
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: MACHINE });
});

test('a start that was not finished, and a record that is damaged, are broken; a QEMU that is gone is off', async () => {
  const { machine, places, record } = await scene();
  await writeQemuRecord(places.record, { ...record, power: 'on', booted: false });
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'StartUnfinished' });
  expect(await machine.isUp()).toBe(false);
  writeFileSync(places.record, '{');
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'RecordDamaged' });
  await writeQemuRecord(places.record, { ...record, power: 'on' });
  await stopDaemon(places.qemuRecord, { graceMs: 1_000, pace: realPace });
  expect(await machine.observe(signal)).toEqual({ state: 'off' });
});

test('a guest that ignores the power button is ended within the limit, and its record says that it is off', async () => {
  const { machine, said, world } = await scene();
  await machine.perform({ do: 'stop' }, signal);
  expect(said).toEqual(['system_powerdown', 'quit']);
  expect(world.time).toBeLessThan(70_000);
  expect(await machine.observe(signal)).toEqual({ state: 'off' });
  await machine.perform({ do: 'stop' }, signal);
});

test('without an image there is nothing to start from, and the way to get one is told', async () => {
  const { machine } = await scene();
  await machine.perform({ do: 'stop' }, signal);
  await expect(machine.perform({ do: 'start', spec: MACHINE }, signal)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    advice: expect.stringContaining('rdctl image build'),
  });
});

test('the way of the ports is that of the settings at every look, moves while the guest runs, and ends with the machine', async () => {
  const { machine, world, said } = await scene();
  await machine.observe(signal);
  expect(world.way).toBe('ssh');
  await machine.perform({ do: 'adjust', spec: { ...MACHINE, sshPortForwarder: false } }, signal);
  expect(said).toEqual(['ports by qemu']);
  expect(await machine.observe(signal)).toMatchObject({ state: 'on', spec: { sshPortForwarder: false } });
  expect(world.way).toBe('qemu');
  await machine.perform({ do: 'adjust', spec: { ...MACHINE, sshPortForwarder: false } }, signal);
  expect(said).toEqual(['ports by qemu']);
  await machine.perform({ do: 'stop' }, signal);
  expect(world.way).toBe('none');
});
