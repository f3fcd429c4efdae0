import { rm } from 'node:fs/promises';
import { messageOf, RdError } from '../../../errors.ts';
import { stopDaemon } from '../../../os/daemon.ts';
import { ARCHITECTURES } from '../../guest-images/architecture.ts';
import { type FrozenDraft, keepFrozen, releaseData, saveState } from './frozen/freeze.ts';
import { frozenPlaces } from './frozen/state.ts';
import { haltReason, resumeFrom } from './halts.ts';
import { HALTED, SILENT } from './monitor.ts';
import type { MachineParts } from './parts.ts';
import { removeRuntime } from './places.ts';
import { type QemuRecord, readQemuRecord, writeQemuRecord } from './record.ts';

const POWER_DOWN_MS = 45_000;
const QUIT_MS = 10_000;
const POLL_MS = 100;
/** Interval between checks whether a guest that powers down has halted. */
const HALT_CHECK_MS = 1_000;

/**
 * Stops the guest, escalating from the power button to QEMU's quit to a kill. A booted machine leaves a frozen state. A resumed one only
 * releases its data disk and is not shut down, because nothing else of it is kept. Idempotent.
 */
export async function stopMachine(parts: MachineParts, signal: AbortSignal): Promise<void> {
  const { places, guest, monitor, mounts, ports, clock, isAlive } = parts;
  const known = await readQemuRecord(places.record);
  const record = known === 'damaged' ? undefined : known;
  await ports.forget();
  let saved: FrozenDraft | undefined;
  if (await isAlive()) {
    // A halted or booting guest ignores the power button. A guest in an unknown state may react, and so may one whose stop was interrupted
    // while it still had its data disk or was powering down.
    const wasInterrupted = record?.booted === false && record.started !== undefined;
    if ((record?.booted !== false || wasInterrupted) && (await ensureRunning(parts, signal))) {
      if (record === undefined || wasInterrupted) await powerDown(parts, signal);
      else saved = await freezeOrPowerDown(parts, record, signal);
    }
    // QEMU flushes its disks and may exit before it responds.
    if (await isAlive()) {
      await monitor.use((qmp) => qmp.execute('quit', undefined, { signal }), signal).catch(() => undefined);
    }
  }
  await stopDaemon(places.qemuRecord, { graceMs: QUIT_MS, clock, signal });
  await mounts.end(signal);
  await guest.close();
  if (saved && record?.frozenKey !== undefined) await keepState(parts, saved, record.frozenKey);
  await rm(frozenPlaces(places).layer, { force: true });
  await removeRuntime(places);
  if (record === undefined) return rm(places.record, { force: true });
  // The next observation finds that QEMU has ended, so a full disk does not block a stop.
  const why = await writeFailure(parts, { ...record, power: 'off', booted: false });
  if (why !== undefined) parts.log('warn', 'the machine is off, but its record could not be updated', { why });
}

/** Returns the run state. Queries twice: a busy QEMU may miss the first query, and its guest would lose unwritten data. */
async function statusOf({ monitor }: MachineParts, signal: AbortSignal): Promise<string> {
  const status = await monitor.status(signal);
  return status === SILENT ? monitor.status(signal) : status;
}

/** Returns true if the guest runs. Resumes a halted one: it may have data to write, and disk space may have been freed. */
async function ensureRunning(parts: MachineParts, signal: AbortSignal): Promise<boolean> {
  const status = await statusOf(parts, signal);
  if (HALTED[status] === undefined) return status === 'running';
  try {
    return (await resumeFrom(parts, status, signal)) === 'running';
  } catch (error) {
    if (signal.aborted) throw error;
    return false;
  }
}

/**
 * Prepares the guest for the end of QEMU: freezes it if enabled and possible, otherwise shuts it down.
 * @returns the state that QEMU saved, if any.
 */
async function freezeOrPowerDown(
  parts: MachineParts,
  record: QemuRecord,
  signal: AbortSignal,
): Promise<FrozenDraft | undefined> {
  const { log } = parts;
  const resumed = record.started?.how === 'resume';
  if (resumed || (parts.freezes && record.frozenKey !== undefined && !record.adjusted)) {
    // Write the record first: from here on the guest is unusable. If the record cannot be written, the guest stays usable.
    const why = (await writeFailure(parts, { ...record, booted: false })) ?? (await releaseHost(parts, signal));
    if (why !== undefined) log('info', 'the guest is not frozen', { why });
    else if (resumed) return undefined;
    else {
      try {
        return await saveState(parts, record.spec.memoryGiB, signal);
      } catch (error) {
        signal.throwIfAborted();
        log('warn', 'the guest could not be frozen', { why: messageOf(error) });
        // A halted guest would ignore the button, and has released its data disk.
        if ((await statusOf(parts, signal)) !== 'running') return undefined;
      }
    }
  }
  await powerDown(parts, signal);
  return undefined;
}

/**
 * Writes the record.
 * @returns the reason that it failed, as a clause.
 */
async function writeFailure({ places }: MachineParts, record: QemuRecord): Promise<string | undefined> {
  try {
    await writeQemuRecord(places.record, record);
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Makes the guest release every resource of the host.
 * @returns the reason that it refuses, as a clause.
 */
async function releaseHost(parts: MachineParts, signal: AbortSignal): Promise<string | undefined> {
  const blocked = await parts.mounts.blocksMigration();
  if (blocked !== undefined) return blocked;
  try {
    await parts.mounts.unmount(signal);
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
  return releaseData(parts, signal);
}

/** Keeps a saved state. Best effort: the machine is already off. */
async function keepState(parts: MachineParts, saved: FrozenDraft, key: string): Promise<void> {
  try {
    await keepFrozen(parts, saved, key);
    parts.log('info', 'the machine is frozen; its next start resumes it', {});
  } catch (error) {
    parts.log('warn', 'the guest could not be frozen', { why: messageOf(error) });
  }
}

/** Makes the guest power down, by the power button where it has one, and waits for QEMU to exit. */
async function powerDown(parts: MachineParts, signal: AbortSignal): Promise<void> {
  const { host, guest, monitor, clock, log, isAlive } = parts;
  const request = ARCHITECTURES[host.architecture].powerButton
    ? monitor.use((qmp) => qmp.execute('system_powerdown', undefined, { signal }), signal)
    : guest.run(['systemctl', '--no-block', 'poweroff'], { signal });
  const wasRequested = await request.then(
    () => true,
    (error: unknown) => {
      if (signal.aborted) throw error;
      return false;
    },
  );
  if (!wasRequested) return;
  const deadline = clock.now() + POWER_DOWN_MS;
  for (let nextCheck = clock.now() + HALT_CHECK_MS; (await isAlive()) && clock.now() < deadline; ) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'stopping the guest was canceled');
    await clock.sleep(POLL_MS, signal);
    if (clock.now() < nextCheck) continue;
    nextCheck = clock.now() + HALT_CHECK_MS;
    // A full disk blocks the shutdown, and waiting frees no space.
    const why = await haltReason(parts, signal);
    if (why === undefined) continue;
    log('warn', 'the guest cannot power down; killing it', { why });
    return;
  }
  if (await isAlive()) log('warn', 'the guest did not power down; killing it', {});
}
