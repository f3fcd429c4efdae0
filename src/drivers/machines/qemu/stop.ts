import { rm } from 'node:fs/promises';
import { RdError } from '../../../errors.ts';
import { stopDaemon } from '../../../process/daemon.ts';
import { type FrozenDraft, giveBackData, keepFrozen, saveState } from './frozen/freeze.ts';
import { frozenPlaces } from './frozen/places.ts';
import { goOnFrom } from './go-on.ts';
import { standstill } from './halt-watch.ts';
import { HALTED, SILENT } from './monitor.ts';
import type { MachineParts } from './parts.ts';
import { type QemuRecord, readQemuRecord, writeQemuRecord } from './record.ts';
import { removeRuntime } from './runtime.ts';

const POWER_DOWN_MS = 45_000;
const QUIT_MS = 10_000;
const POLL_MS = 100;
/** Between two looks whether a guest that powers down has been halted. */
const HALT_LOOK_MS = 1_000;

/**
 * Ends the guest as gently as it lets us: by its power button, then by QEMU's own end, then by a kill. A machine that has booted leaves a
 * frozen state, and one that came out of a frozen state gives back its data disk and is not waited for: nothing else of it is kept.
 * Harmless when nothing is there.
 */
export async function stopMachine(parts: MachineParts, signal: AbortSignal): Promise<void> {
  const { places, guest, monitor, mounts, ports, pace, isAlive } = parts;
  const known = await readQemuRecord(places.record);
  const record = known === 'damaged' ? undefined : known;
  await ports.forget();
  let saved: FrozenDraft | undefined;
  if (await isAlive()) {
    // A guest that does not run would not see the button, nor would one that is still starting. One of which nothing is known may, and
    // one whose stop was cut off, which still has its data disk or is powering down.
    const cutOff = record?.booted === false && record.started !== undefined;
    if ((record?.booted !== false || cutOff) && (await runsAgain(parts, signal))) {
      if (record === undefined || cutOff) await powerDown(parts, signal);
      else saved = await saveOrEnd(parts, record, signal);
    }
    // QEMU flushes its disks; it may end before it has answered.
    if (await isAlive()) {
      await monitor.use((qmp) => qmp.execute('quit', undefined, { signal }), signal).catch(() => undefined);
    }
  }
  await stopDaemon(places.qemuRecord, { graceMs: QUIT_MS, pace, signal });
  await mounts.end(signal);
  await guest.close();
  if (saved && record?.frozenKey !== undefined) await keep(parts, saved, record.frozenKey);
  await rm(frozenPlaces(places).layer, { force: true });
  await removeRuntime(places);
  if (record === undefined) return rm(places.record, { force: true });
  // A look sees that QEMU has ended, so that a full disk does not keep a machine from stopping.
  const why = await unwritten(parts, { ...record, power: 'off', booted: false });
  if (why !== undefined) parts.log('warn', 'that the machine is off was not written down', { why });
}

/** Asked twice: a QEMU that is busy may miss the first question, and its guest would lose what it has not written yet. */
async function statusOf({ monitor }: MachineParts, signal: AbortSignal): Promise<string> {
  const status = await monitor.status(signal);
  return status === SILENT ? monitor.status(signal) : status;
}

/** Whether the guest runs. One that is halted is told to go on: it may have things to write, and somebody may have made room. */
async function runsAgain(parts: MachineParts, signal: AbortSignal): Promise<boolean> {
  const status = await statusOf(parts, signal);
  if (HALTED[status] === undefined) return status === 'running';
  try {
    return (await goOnFrom(parts, status, signal)) === 'running';
  } catch (error) {
    if (signal.aborted) throw error;
    return false;
  }
}

/**
 * What comes before the end of QEMU: a guest that needs nothing any more, or has ended.
 * @returns the state that QEMU has handed over, if that was wanted and possible.
 */
async function saveOrEnd(
  parts: MachineParts,
  record: QemuRecord,
  signal: AbortSignal,
): Promise<FrozenDraft | undefined> {
  const { log } = parts;
  const resumed = record.started?.how === 'resume';
  if (resumed || (parts.freezes && record.frozenKey !== undefined && !record.adjusted)) {
    // First the word: from here on the guest is of no use to anybody, whoever finds it. Without room for it, it is kept of use.
    const why = (await unwritten(parts, { ...record, booted: false })) ?? (await freeGuest(parts, signal));
    if (why !== undefined) log('info', 'the guest is not frozen', { why });
    else if (resumed) return undefined;
    else {
      try {
        return await saveState(parts, record.spec.memoryGiB, signal);
      } catch (error) {
        signal.throwIfAborted();
        log('warn', 'the guest could not be frozen', { why: error instanceof Error ? error.message : String(error) });
        // One that is halted would not see the button, and has given back its data disk.
        if ((await statusOf(parts, signal)) !== 'running') return undefined;
      }
    }
  }
  await powerDown(parts, signal);
  return undefined;
}

/** Writes the record. @returns why that cannot be done, as a clause. */
async function unwritten({ places }: MachineParts, record: QemuRecord): Promise<string | undefined> {
  try {
    await writeQemuRecord(places.record, record);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Has the guest let go of everything of this host. @returns why it does not, as a clause. */
async function freeGuest(parts: MachineParts, signal: AbortSignal): Promise<string | undefined> {
  const blocked = await parts.mounts.blocksMigration();
  if (blocked !== undefined) return blocked;
  try {
    await parts.mounts.unmount(signal);
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof Error ? error.message : String(error);
  }
  return giveBackData(parts, signal);
}

/** The machine is off already, whether this works or not. */
async function keep(parts: MachineParts, saved: FrozenDraft, key: string): Promise<void> {
  try {
    await keepFrozen(parts, saved, key);
    parts.log('info', 'the machine is frozen; its next start is a resume', {});
  } catch (error) {
    parts.log('warn', 'the guest could not be frozen', { why: error instanceof Error ? error.message : String(error) });
  }
}

/** Asks the guest to end as a power button does, and waits. */
async function powerDown(parts: MachineParts, signal: AbortSignal): Promise<void> {
  const { monitor, pace, log, isAlive } = parts;
  const asked = await monitor
    .use((qmp) => qmp.execute('system_powerdown', undefined, { signal }), signal)
    .then(
      () => true,
      (error: unknown) => {
        if (signal.aborted) throw error;
        return false;
      },
    );
  if (!asked) return;
  const deadline = pace.now() + POWER_DOWN_MS;
  for (let look = pace.now() + HALT_LOOK_MS; (await isAlive()) && pace.now() < deadline; ) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'stopping the guest was cancelled');
    await pace.sleep(POLL_MS, signal);
    if (pace.now() < look) continue;
    look = pace.now() + HALT_LOOK_MS;
    // What it has to write before its end finds no room, and waiting makes none.
    const why = await standstill(parts, signal);
    if (why === undefined) continue;
    log('warn', 'the guest cannot power down, and is ended', { why });
    return;
  }
  if (await isAlive()) log('warn', 'the guest does not power down, and is ended', {});
}
