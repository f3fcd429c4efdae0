import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { RdError } from '../../../errors.ts';
import type { GuestImage } from '../../../guest-images/image.ts';
import type { ImageStore } from '../../../guest-images/store.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../../process/daemon.ts';
import { tailOf } from '../../../process/log-file.ts';
import type { Pace } from '../../../process/pace.ts';
import type { DriverContext, MachineDriver, MachineSpec, MachineStatus } from '../../driver.ts';
import type { Accelerator } from './arguments.ts';
import { qemuArguments } from './arguments.ts';
import { ensureDisks, type HostRun } from './disks.ts';
import type { Connection } from './guest.ts';
import { ensureKeys } from './keys.ts';
import { NETWORK_SCRIPT } from './network.ts';
import type { QemuPlaces } from './places.ts';
import { openQmp, type Qmp } from './qmp.ts';
import { type QemuRecord, readQemuRecord, writeQemuRecord } from './record.ts';
import { makeRuntime, removeRuntime } from './runtime.ts';

export interface QemuMachineParts {
  places: QemuPlaces;
  logFile: string;
  images: ImageStore;
  run: HostRun;
  environment: Readonly<Record<string, string>>;
  guest: Connection;
  /** Looks once what can run a guest here. */
  accelerator(signal: AbortSignal): Promise<Accelerator>;
  pace: Pace;
  log: DriverContext['log'];
}

/** Without the help of a processor a guest takes half a minute on an idle computer. */
const BOOT_MS = 300_000;
const POWER_DOWN_MS = 45_000;
const QUIT_MS = 10_000;
const POLL_MS = 100;
const PATIENCE_MS = 60_000;
/** A guest does not see the time that its host slept. */
const CLOCK_LOOK_MS = 60_000;
const CLOCK_LIMIT_S = 5;
/** States in which QEMU keeps the guest as it is until it is told to go on. */
const HALTED: Readonly<Record<string, string>> = {
  'io-error': 'the guest was halted when a disk could not be written; most likely the disk of this host is full',
  paused: 'the guest was halted by somebody',
};

export interface QemuMachine extends MachineDriver {
  /** Whether the guest has been started to the end and QEMU is there. */
  isUp(): Promise<boolean>;
  /** Whether the guest goes on and can be talked to. */
  answers(signal: AbortSignal): Promise<boolean>;
}

/** A virtual machine in QEMU. */
export function qemuMachine(parts: QemuMachineParts): QemuMachine {
  const { places, logFile, images, run, environment, guest, accelerator, pace, log } = parts;
  const isAlive = async () => (await findDaemon(places.qemuRecord)).state === 'running';
  /** Looks come at the same time, and QEMU talks to one at a time. */
  let asking: Promise<string> | undefined;
  let unreachableSince: number | undefined;
  let clockSeen: { at: number; off: boolean } | undefined;

  async function observe(signal: AbortSignal): Promise<MachineStatus> {
    const record = await readQemuRecord(places.record);
    if (record === undefined) return { state: 'absent' };
    if (record === 'damaged') {
      return { state: 'broken', reason: 'RecordDamaged', message: `${places.record} cannot be understood` };
    }
    if (record.power === 'off' || !(await isAlive())) return { state: 'off' };
    if (!record.booted) return broken('StartUnfinished', 'the start of the machine was not finished');
    const status = await qemuStatus(signal);
    const halted = HALTED[status];
    if (halted !== undefined) return { state: 'on', spec: record.spec, repair: halted };
    if (status !== 'running') return broken('NotRunning', `QEMU says that the guest is ${status}`);
    if (!(await guest.isConnected(signal))) {
      // A busy guest and a dead one look alike for a while, and only one of them is to be ended.
      unreachableSince ??= pace.now();
      if (pace.now() - unreachableSince > PATIENCE_MS) return broken('GuestUnreachable', 'the guest does not answer');
      throw new RdError('ERR_DRIVER_FAILED', 'the guest does not answer', {
        advice: `It is ended and started again when that goes on for ${PATIENCE_MS / 1000} seconds.`,
      });
    }
    unreachableSince = undefined;
    if (await clockIsOff(signal)) {
      return { state: 'on', spec: record.spec, repair: 'the clock of the guest is not that of this host' };
    }
    return { state: 'on', spec: record.spec };
  }

  /** Looks now and then, because a look costs a program in the guest. */
  async function clockIsOff(signal: AbortSignal): Promise<boolean> {
    if (clockSeen && !clockSeen.off && pace.now() - clockSeen.at < CLOCK_LOOK_MS) return false;
    const before = seconds();
    const { stdout } = await guest.run(['date', '+%s'], { signal });
    const there = Number(stdout.trim());
    const off = there < before - CLOCK_LIMIT_S || there > seconds() + CLOCK_LIMIT_S;
    clockSeen = { at: pace.now(), off };
    return off;
  }

  /** Brings back what a look has found missing, while the guest goes on. */
  async function repair(signal: AbortSignal): Promise<void> {
    const status = await qemuStatus(signal);
    const halted = HALTED[status];
    if (halted !== undefined) {
      await withQmp((qmp) => qmp.execute('cont', undefined, { signal }), signal);
      await pace.sleep(POLL_MS, signal);
      if ((await qemuStatus(signal)) === status) {
        throw new RdError('ERR_DRIVER_FAILED', halted, {
          advice: `Make room on the disk that ${places.data} is on; the guest then goes on by itself.`,
        });
      }
    }
    if (await clockIsOff(signal)) await guest.run(['date', '-u', '-s', `@${seconds()}`], { signal });
    clockSeen = undefined;
  }

  /** `running`, another word of QEMU's, or that it does not answer. */
  function qemuStatus(signal: AbortSignal): Promise<string> {
    asking ??= askStatus(signal).finally(() => {
      asking = undefined;
    });
    return asking;
  }

  async function askStatus(signal: AbortSignal): Promise<string> {
    try {
      return await withQmp(async (qmp) => {
        const answer = await qmp.execute('query-status', undefined, { signal });
        return typeof answer === 'object' && answer !== null && 'status' in answer ? String(answer.status) : 'unknown';
      }, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return 'not answering';
    }
  }

  async function withQmp<T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal): Promise<T> {
    const qmp = await openQmp(places.monitor, { signal });
    try {
      return await work(qmp);
    } finally {
      qmp.close();
    }
  }

  async function start(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const known = await readQemuRecord(places.record);
    const before = known === 'damaged' ? undefined : known;
    const found = await observe(signal);
    if (found.state === 'on' && sameSpec(found.spec, spec))
      return found.repair === undefined ? undefined : repair(signal);
    if (found.state !== 'absent' && found.state !== 'off') await stop(signal);
    const image = await imageFor(before);
    const record: QemuRecord = {
      power: 'on',
      spec,
      image: image.digest,
      sshPort: await freePort(),
      accelerator: await accelerator(signal),
      booted: false,
    };
    clockSeen = undefined;
    unreachableSince = undefined;
    await makeRuntime(places);
    await ensureKeys(places, record.sshPort, run, signal);
    await ensureDisks({ places, run, log, signal }, image, before?.image === image.digest, spec.diskBytes);
    await rm(places.serialLog, { force: true });
    // Before QEMU is there: what a crash leaves must be known to the next start and stop.
    await writeQemuRecord(places.record, record);
    const argv = qemuArguments({
      image,
      places,
      accelerator: record.accelerator,
      memoryGiB: spec.memoryGiB,
      memoryCeilingGiB: spec.memoryGiB,
      cpus: spec.cpus,
      cpuCeiling: spec.cpus,
      sshPort: record.sshPort,
    });
    await startDaemon({ argv, recordFile: places.qemuRecord, logFile, env: environment });
    try {
      await guest.connect(BOOT_MS, isAlive, signal);
      await guest.run(['sh', '-s'], { input: NETWORK_SCRIPT, signal });
    } catch (error) {
      signal.throwIfAborted();
      // A damaged image is found out here and not before: its sums take seconds that every start would pay.
      await images.verify(image, signal);
      if (await isAlive()) throw error;
      throw await qemuFailed(error);
    }
    await writeQemuRecord(places.record, { ...record, booted: true });
    log('info', 'the guest is up', { image: image.digest, accelerator: record.accelerator });
  }

  async function imageFor(before: QemuRecord | undefined): Promise<GuestImage> {
    const known = await images.list();
    const [newest] = known;
    const same = known.find(({ digest }) => digest === before?.image);
    if (same) return same;
    if (newest) {
      if (before) log('warn', 'the image of the machine is gone; another takes its place', { gone: before.image });
      return newest;
    }
    throw new RdError('ERR_DRIVER_TERMINAL', 'there is no guest image to make a machine from', {
      advice:
        'Make one with `rdctl image build`, or get one with `rdctl image fetch`. The data of the machine is on a disk of its own.',
    });
  }

  async function qemuFailed(cause: unknown): Promise<RdError> {
    const details = await tailOf(logFile);
    const last = details.at(-1);
    return new RdError('ERR_DRIVER_FAILED', last ? `QEMU ended: ${last}` : 'QEMU ended', {
      cause,
      details,
      advice: `See ${logFile}.`,
    });
  }

  async function stop(signal: AbortSignal): Promise<void> {
    const known = await readQemuRecord(places.record);
    const record = known === 'damaged' ? undefined : known;
    if (await isAlive()) {
      // A guest that does not run would not see the button.
      if (record?.booted && (await qemuStatus(signal)) === 'running') await powerDown(signal);
      if (await isAlive()) await quit(signal);
    }
    await stopDaemon(places.qemuRecord, { graceMs: QUIT_MS, pace, signal });
    await guest.close();
    await removeRuntime(places);
    if (record) await writeQemuRecord(places.record, { ...record, power: 'off', booted: false });
    else await rm(places.record, { force: true });
  }

  /** Asks the guest to end as a power button does, and waits. */
  async function powerDown(signal: AbortSignal): Promise<void> {
    const asked = await withQmp((qmp) => qmp.execute('system_powerdown', undefined, { signal }), signal).then(
      () => true,
      (error: unknown) => {
        if (signal.aborted) throw error;
        return false;
      },
    );
    if (!asked) return;
    const deadline = pace.now() + POWER_DOWN_MS;
    while ((await isAlive()) && pace.now() < deadline) {
      if (signal.aborted) throw new RdError('ERR_CANCELLED', 'stopping the guest was cancelled');
      await pace.sleep(POLL_MS, signal);
    }
    if (await isAlive()) log('warn', 'the guest does not power down, and is ended', {});
  }

  async function quit(signal: AbortSignal): Promise<void> {
    // QEMU flushes its disks; it may end before it has answered.
    await withQmp((qmp) => qmp.execute('quit', undefined, { signal }), signal).catch(() => undefined);
  }

  return {
    observe,
    answers: async (signal) => (await qemuStatus(signal)) === 'running' && (await guest.isConnected(signal)),
    async isUp() {
      const record = await readQemuRecord(places.record);
      if (record === undefined || record === 'damaged') return false;
      return record.power === 'on' && record.booted && (await isAlive());
    },
    async perform(step, signal) {
      if (step.do === 'stop') await stop(signal);
      else await start(step.spec, signal);
    },
  };
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}

function broken(reason: string, message: string): MachineStatus {
  return { state: 'broken', reason, message };
}

function sameSpec(one: MachineSpec, other: MachineSpec): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** One that nobody listens on now. Who takes it before QEMU does makes the start fail, and the next one takes another. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
