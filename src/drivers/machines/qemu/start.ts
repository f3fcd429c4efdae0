import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { RdError } from '../../../errors.ts';
import type { GuestImage } from '../../../guest-images/image.ts';
import { startDaemon } from '../../../process/daemon.ts';
import { tailOf } from '../../../process/log-file.ts';
import type { MachineSpec } from '../../driver.ts';
import { qemuArguments } from './arguments.ts';
import { ensureDisks } from './disks.ts';
import { ensureKeys } from './keys.ts';
import { NETWORK_SCRIPT } from './network.ts';
import type { MachineParts } from './parts.ts';
import { type QemuRecord, readQemuRecord, writeQemuRecord } from './record.ts';
import { makeRuntime } from './runtime.ts';

/** Without the help of a processor a guest takes half a minute on an idle computer. */
const BOOT_MS = 300_000;

/**
 * Starts a machine that is off, or of which only leavings are there.
 * @throws RdError `ERR_DRIVER_TERMINAL` without an image and with a damaged data disk, `ERR_DRIVER_FAILED` when QEMU or the guest do
 *   not come up, `ERR_CANCELLED`.
 */
export async function startMachine(parts: MachineParts, spec: MachineSpec, signal: AbortSignal): Promise<void> {
  const { places, logFile, images, run, environment, guest, clock, accelerator, isAlive, log } = parts;
  const known = await readQemuRecord(places.record);
  const before = known === 'damaged' ? undefined : known;
  const image = await imageFor(parts, before);
  const record: QemuRecord = {
    power: 'on',
    spec,
    image: image.digest,
    sshPort: await freePort(),
    accelerator: await accelerator(signal),
    booted: false,
  };
  clock.forget();
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
    throw await qemuFailed(logFile, error);
  }
  await writeQemuRecord(places.record, { ...record, booted: true });
  log('info', 'the guest is up', { image: image.digest, accelerator: record.accelerator });
}

async function imageFor({ images, log }: MachineParts, before: QemuRecord | undefined): Promise<GuestImage> {
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

async function qemuFailed(logFile: string, cause: unknown): Promise<RdError> {
  const details = await tailOf(logFile);
  const last = details.at(-1);
  return new RdError('ERR_DRIVER_FAILED', last ? `QEMU ended: ${last}` : 'QEMU ended', {
    cause,
    details,
    advice: `See ${logFile}.`,
  });
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
