import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { EngineSpec, MachineSpec } from '../src/drivers/driver.ts';
import type { GuestImage } from '../src/drivers/guest-images/image.ts';
import { ceilings } from '../src/drivers/machines/qemu/start.ts';
import { ownHost } from '../src/drivers/machines/qemu/support.ts';
import { type BareMachine, bareMachine, pings } from './bare-machine.ts';
import { compare, type Result, result } from './measure.ts';
import { benchImage, inGuest, MACHINE, openMachine } from './our-machine.ts';

const GIB = 2 ** 30;
const MORE: MachineSpec = { ...MACHINE, memoryGiB: MACHINE.memoryGiB + 1 };
const MOBY: EngineSpec = {
  name: 'moby',
  storageDriver: 'auto',
  webAssembly: false,
  allowedImages: { enabled: false, patterns: [] },
};
/** Random bytes on the kept disk, so that a copy has something to copy. */
const PAYLOAD_MIB = 128;
const MOUNT = '/var/lib/rdctl';
const FILL = `dd if=/dev/urandom of=${MOUNT}/payload bs=1M count=${PAYLOAD_MIB} conv=fsync status=none`;
/** What the kernel takes of new memory for itself. */
const SLACK_KIB = 64 * 1024;
const execute = promisify(execFile);
const never = new AbortController().signal;

interface Figures {
  cold: number;
  resume: number;
  memory: number;
  copy: number;
  restore: number;
}

/**
 * Times of a machine of ours against a guest of the same image and flags that a script drives: QEMU, ssh and dockerd as Debian starts it.
 * Empty without an image: `RDCTL_TEST_IMAGES` names a store of them.
 */
export async function machine(rounds: number): Promise<Result[]> {
  const image = await benchImage();
  const ours: Figures[] = [];
  const bare: Omit<Figures, 'resume'>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    bare.push(await bareRound(image));
    ours.push(await ourRound(image));
  }
  const line = (
    name: string,
    compared: string,
    figure: keyof Figures,
    reference: keyof Figures & keyof (typeof bare)[0],
    aim: number,
  ) =>
    result({
      name: `machine: ${name}`,
      compared,
      ...compare(
        ours.map((each) => each[figure]),
        bare.map((each) => each[reference]),
      ),
      aim: { sign: '<=', value: aim },
      unit: 'ms',
      rounds,
    });
  return [
    line(
      'cold boot to engine',
      'nothing there to dockerd answering / QEMU, ssh and Debian docker.service',
      'cold',
      'cold',
      1.15,
    ),
    line('resume to engine', 'frozen machine to dockerd answering / cold boot of bare QEMU', 'resume', 'cold', 0.3),
    line(
      'memory, 1 GiB more',
      'adjusted and seen in the guest / device_add and a look at /proc/meminfo',
      'memory',
      'memory',
      1.5,
    ),
    line(
      `copy of the data disk, ${PAYLOAD_MIB} MiB`,
      'live copy, checked / fsfreeze, drive-backup and qemu-img check',
      'copy',
      'copy',
      1.5,
    ),
    line('restore to engine', 'stop, copy back, start / the same by hand', 'restore', 'restore', 1.15),
  ];
}

/** A new machine in a new home, through the interface that the service uses. */
async function ourRound(image: GuestImage): Promise<Figures> {
  const { driver, home } = await openMachine(image);
  const start = async () => {
    await driver.machine.perform({ do: 'start', spec: MACHINE }, never);
    await driver.engines.moby.perform({ do: 'start', spec: MOBY }, never);
    const seen = await driver.engines.moby.observe(never);
    if (seen.state !== 'running' || !(await pings(seen.endpoint.slice('unix://'.length)))) throw new Error('no engine');
  };
  const stop = async () => {
    await driver.engines.moby.perform({ do: 'stop' }, never);
    await driver.machine.perform({ do: 'stop' }, never);
  };
  try {
    const cold = await timed(start);
    await inGuest(driver, FILL);
    // Freezes it.
    await stop();
    const resume = await timed(start);
    const seen = await driver.machine.observe(never);
    if (seen.state !== 'on' || seen.started?.how !== 'resume') throw new Error('the machine did not resume');
    const data = driver.keeps.find((path) => path.endsWith('.qcow2')) ?? '';
    const saved = join(home, 'saved.qcow2');
    const copy = await timed(async () => driver.copyLive?.([{ from: data, to: saved }], never));
    const restore = await timed(async () => {
      await stop();
      await rename(saved, data);
      await start();
    });
    const memory = await timed(() => driver.machine.perform({ do: 'adjust', spec: MORE }, never));
    return { cold, resume, memory, copy, restore };
  } finally {
    await stop();
    await driver.release?.();
    rmSync(home, { recursive: true, force: true });
  }
}

/** The same with the programs alone. */
async function bareRound(image: GuestImage): Promise<Omit<Figures, 'resume'>> {
  const { memoryGiB, cpus, diskBytes } = MACHINE;
  const bare = await bareMachine({ image, memoryGiB, cpus, diskBytes, ...ceilings(MACHINE, ownHost().architecture) });
  try {
    const cold = await timed(async () => {
      await bare.boot();
      await bare.engine();
    });
    await bare.guest(FILL);
    const saved = `${bare.data}.saved`;
    const copy = await timed(async () => {
      // As consistent as ours: nothing is written at the moment of the copy.
      await bare.guest('fsfreeze', '--freeze', MOUNT);
      await bare.qmp(async (qmp) => {
        await qmp.execute('drive-backup', { device: 'data', target: saved, sync: 'full', format: 'qcow2' });
        await bare.guest('fsfreeze', '--unfreeze', MOUNT);
        while (JSON.stringify(await qmp.execute('query-block-jobs')) !== '[]') await sleep(20);
      });
      await execute('qemu-img', ['check', '-q', saved]);
    });
    const restore = await timed(async () => {
      await bare.powerDown();
      await rename(saved, bare.data);
      await bare.boot();
      await bare.engine();
    });
    const memory = await timed(async () => {
      const before = await memoryOf(bare);
      await bare.qmp(async (qmp) => {
        await qmp.execute('object-add', { 'qom-type': 'memory-backend-ram', id: 'more', size: GIB });
        await qmp.execute('device_add', { driver: 'pc-dimm', id: 'dimm', memdev: 'more' });
      });
      while ((await memoryOf(bare)) < before + GIB / 1024 - SLACK_KIB) await sleep(50);
    });
    return { cold, copy, restore, memory };
  } finally {
    await bare.powerDown();
    bare.remove();
  }
}

/** KiB that the guest has. */
async function memoryOf(bare: BareMachine): Promise<number> {
  const text = await bare.guest('cat', '/proc/meminfo');
  return Number(/^MemTotal:\s+(\d+)/m.exec(text)?.[1]);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
