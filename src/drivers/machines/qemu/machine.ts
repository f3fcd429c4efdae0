import { mkdir, rm } from 'node:fs/promises';
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
const POWER_DOWN_MS = 60_000;
const QUIT_MS = 10_000;
const POLL_MS = 100;

/** A virtual machine in QEMU. */
export function qemuMachine(parts: QemuMachineParts): MachineDriver {
  const { places, logFile, images, run, environment, guest, accelerator, pace, log } = parts;
  const isAlive = async () => (await findDaemon(places.qemuRecord)).state === 'running';

  async function observe(signal: AbortSignal): Promise<MachineStatus> {
    const record = await readQemuRecord(places.record);
    if (record === undefined) return { state: 'absent' };
    if (record === 'damaged') {
      return { state: 'broken', reason: 'RecordDamaged', message: `${places.record} cannot be understood` };
    }
    if (record.power === 'off' || !(await isAlive())) return { state: 'off' };
    if (!record.booted) return broken('StartUnfinished', 'the start of the machine was not finished');
    const status = await qemuStatus(signal);
    if (status !== 'running') return broken('NotRunning', `QEMU says that the guest is ${status}`);
    if (!(await guest.isConnected(signal))) return broken('GuestUnreachable', 'the guest does not answer');
    return { state: 'on', spec: record.spec };
  }

  /** `running`, another word of QEMU's, or that it does not answer. */
  async function qemuStatus(signal: AbortSignal): Promise<string> {
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
    if (found.state === 'on' && sameSpec(found.spec, spec)) return;
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
    await mkdir(places.run, { recursive: true, mode: 0o700 });
    await ensureKeys(places, record.sshPort, run, signal);
    await ensureDisks(places, image, spec.diskBytes, run, signal);
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
      if (await isAlive()) throw error;
      throw await qemuFailed(error);
    }
    await writeQemuRecord(places.record, { ...record, booted: true });
    log('info', 'the guest is up', { image: image.digest, accelerator: record.accelerator });
  }

  async function imageFor(before: QemuRecord | undefined): Promise<GuestImage> {
    if (before) return images.find(before.image);
    const [newest] = await images.list();
    if (newest) return newest;
    throw new RdError('ERR_DRIVER_TERMINAL', 'there is no guest image to make a machine from', {
      advice: 'Make one with `rdctl image build`, or get one with `rdctl image fetch`.',
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
      if (record?.booted) await powerDown(signal);
      if (await isAlive()) await quit(signal);
    }
    await stopDaemon(places.qemuRecord, { graceMs: QUIT_MS, pace, signal });
    await guest.close();
    await rm(places.run, { recursive: true, force: true });
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
    async perform(step, signal) {
      if (step.do === 'stop') await stop(signal);
      else await start(step.spec, signal);
    },
  };
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
