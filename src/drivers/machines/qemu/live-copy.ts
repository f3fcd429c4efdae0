import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { writeFileAtomic } from '../../../os/atomic-file.ts';
import type { Clock } from '../../../os/clock.ts';
import { ioError, systemCode } from '../../../os/io-error.ts';
import { isThere } from '../../../os/regular-file.ts';
import type { Driver, DriverContext } from '../../driver.ts';
import type { ConfinedRun } from './confine/access.ts';
import { diskCopy } from './disk-copy.ts';
import type { Connection } from './guest.ts';
import type { Monitor } from './monitor.ts';
import type { QemuPlaces } from './places.ts';
import { REFUSE_WHILE_GROWING } from './setup-scripts.ts';

export interface LiveCopyParts {
  places: Pick<QemuPlaces, 'data' | 'liveCopy' | 'copies'>;
  guest: Pick<Connection, 'run'>;
  monitor: Monitor;
  run: ConfinedRun;
  clock: Clock;
  /** True if a QEMU of this machine runs. */
  isAlive(): Promise<boolean>;
  /** True if the guest runs and responds. */
  answers(signal: AbortSignal): Promise<boolean>;
  log: DriverContext['log'];
}

export interface LiveCopies {
  /** Copies the machine's data while it runs, as specified by `Driver.copyLive`. */
  copy: NonNullable<Driver['copyLive']>;
  /**
   * Cleans up after a killed service: cancels a running copy and thaws the file system. Does nothing during a copy of this process. Logs a
   * failure; the next observation retries.
   */
  settle(): Promise<void>;
}

const DRAFT = 'data.qcow2';
/** Limit for the cleanup, which ignores the caller's signal. */
const UNDO_MS = 90_000;

/** Copies a running machine's data. A marker file records that a copy is in progress, for the next service. */
export function liveCopies(parts: LiveCopyParts): LiveCopies {
  const { places, guest, monitor, run, clock, isAlive, answers, log } = parts;
  const disk = diskCopy({ monitor, run, clock, isAlive });
  const freeze = guestFreeze(guest);
  /** The copy is written here first, because QEMU can open no other directory. */
  const draft = join(places.copies, DRAFT);
  let isCopying = false;
  let settling: Promise<void> | undefined;

  async function cleanUp(targets: readonly string[]): Promise<void> {
    const signal = AbortSignal.timeout(UNDO_MS);
    try {
      if (await isAlive()) await disk.drop(signal);
    } finally {
      // The directory stays, because QEMU sees it as it was at its start.
      for (const path of [draft, ...targets]) await rm(path, { recursive: true, force: true });
    }
    // A full target disk halts the guest on its next write. Space is free again.
    if ((await isAlive()) && (await monitor.status(signal)) === 'io-error') {
      await monitor.use((qmp) => qmp.execute('cont', undefined, { signal }), signal);
    }
    await rm(places.liveCopy, { force: true });
  }

  async function cancelAbandoned(): Promise<void> {
    await cleanUp([]);
    await freeze.thaw().catch(() => undefined);
    log('info', 'canceled an abandoned copy of the data disk');
  }

  async function copyAll(
    copies: readonly { from: string; to: string }[],
    signal: AbortSignal,
    progress: (share: number) => void,
  ): Promise<void> {
    const data = copies.find(({ from }) => from === places.data);
    if (data) {
      await mkdir(places.copies, { recursive: true, mode: 0o700 });
      await disk.prepare(draft, signal);
    }
    await freeze.whileFrozen(async () => {
      for (const { from, to } of copies) {
        if (from !== places.data && (await isThere(from))) await copyFile(from, to);
      }
      if (data) await disk.begin(signal);
    }, signal);
    if (!data) return;
    await disk.finish(signal, progress);
    await moveFile(draft, data.to);
  }

  return {
    async copy(copies, signal, progress = () => undefined) {
      if (isCopying) throw new RdError('ERR_DRIVER_FAILED', 'another copy of the machine is being made');
      isCopying = true;
      try {
        await settling;
        if (!(await isAlive()) || !(await answers(signal))) {
          throw new RdError('ERR_NOT_READY', 'the machine is off or does not respond');
        }
        const targets = copies.map(({ to }) => to);
        for (const target of targets) {
          if (await isThere(target)) throw new RdError('ERR_IO', `${target} already exists`);
        }
        if (await isThere(places.liveCopy)) await cancelAbandoned();
        await writeFileAtomic(places.liveCopy, 'A copy of the data disk is being made.\n');
        try {
          await copyAll(copies, signal, progress);
        } catch (error) {
          await cleanUp(targets).catch((cause: unknown) =>
            log('warn', 'a failed copy could not be cleaned up; retrying', { cause }),
          );
          throw error;
        }
        await rm(places.liveCopy, { force: true });
      } finally {
        isCopying = false;
      }
    },
    async settle() {
      if (isCopying || !(await isThere(places.liveCopy))) return;
      settling ??= cancelAbandoned()
        .catch((error: unknown) => {
          log('warn', 'an abandoned copy of the data disk could not be canceled; retrying', { error });
        })
        .finally(() => {
          settling = undefined;
        });
      await settling;
    },
  };
}

/** Moves a file, even to another file system. */
async function moveFile(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (cause) {
    if (systemCode(cause) !== 'EXDEV') throw ioError('write', to, cause);
    await copyFile(from, to);
    await rm(from);
  }
}

async function copyFile(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, errorOnExist: true, force: false, preserveTimestamps: true }).catch(
    (cause: unknown) => {
      throw ioError('write', to, cause);
    },
  );
}

/** Mount point of the data disk in the guest, and the unit of the freeze watchdog. */
const MOUNT = '/var/lib/rdctl';
const UNIT = 'rdctl-thaw';
/** Seconds until the guest thaws on its own if the service is gone. */
const MAX_S = 30;
/** There may be much to flush before the freeze, and the host disk may be slow. */
const FREEZE_MS = 120_000;
const THAW_MS = 60_000;

/**
 * `$1`: mount point, `$2`: unit, `$3`: seconds. Flushes most data while programs continue. The watchdog runs in the guest and retries until
 * it succeeds: a thaw during the freeze would be refused.
 */
const FREEZE_SCRIPT = `set -eu
mountpoint -q -- "$1"
${REFUSE_WHILE_GROWING}systemctl stop "$2.service" 2>/dev/null || true
systemctl reset-failed "$2.service" 2>/dev/null || true
fsfreeze --unfreeze "$1" 2>/dev/null || true
sync --file-system -- "$1"
systemd-run --quiet --collect --unit="$2" -- \\
  /bin/sh -c 'sleep "$2"; i=0; until fsfreeze --unfreeze "$1" || [ "$i" -ge 300 ]; do i=$((i + 1)); sleep 1; done' \\
  thaw "$1" "$3"
exec fsfreeze --freeze "$1"
`;

/**
 * `$1`: mount point, `$2`: unit. Status 1 when the file system was not frozen; the watchdog then stays, because an abandoned freeze may
 * still take effect.
 */
const THAW_SCRIPT = `fsfreeze --unfreeze "$1" 2>/dev/null || exit 1
timeout 20 systemctl stop "$2.service" 2>/dev/null
exit 0
`;

/** Returns operations that freeze the file system of the guest's data disk briefly. */
export function guestFreeze(guest: Pick<Connection, 'run'>) {
  /** Thaws the file system. Returns true if it was still frozen. Takes no signal: a canceled caller must still thaw the guest. */
  async function thaw(): Promise<boolean> {
    const { exitCode } = await guest.run(['sh', '-s', '--', MOUNT, UNIT], {
      input: THAW_SCRIPT,
      timeoutMs: THAW_MS,
      accept: [0, 1],
    });
    return exitCode === 0;
  }

  async function freeze(signal: AbortSignal): Promise<void> {
    const words = [MOUNT, UNIT, String(MAX_S)];
    try {
      await guest.run(['sh', '-s', '--', ...words], { input: FREEZE_SCRIPT, timeoutMs: FREEZE_MS, signal });
    } catch (cause) {
      if (signal.aborted || !(cause instanceof RdError)) throw cause;
      throw new RdError('ERR_DRIVER_FAILED', 'the data disk could not be frozen in the guest', {
        cause,
        details: [cause.message, ...cause.details],
        advice: 'Try again, or with `--stop`.',
      });
    }
  }

  return {
    /**
     * Runs the work while the file system is frozen and flushed.
     * @throws RdError `ERR_DRIVER_FAILED` when it was not frozen throughout, `ERR_CANCELLED`, and any error of the
     * work.
     */
    async whileFrozen<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
      let result: T;
      try {
        await freeze(signal);
        result = await work();
      } catch (error) {
        // The watchdog thaws the file system if this fails.
        await thaw().catch(() => undefined);
        throw error;
      }
      if (await thaw()) return result;
      throw new RdError('ERR_DRIVER_FAILED', 'the data disk did not stay frozen for long enough', {
        details: [`${MOUNT} thawed by itself before the copy began`],
        advice: 'Try again when this computer is less busy, or with `--stop`.',
      });
    },
    /** Thaws the file system. Idempotent. */
    thaw: async () => void (await thaw()),
  };
}
