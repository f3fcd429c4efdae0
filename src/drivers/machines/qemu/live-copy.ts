import { cp, rm } from 'node:fs/promises';
import { RdError } from '../../../errors.ts';
import { writeFileAtomic } from '../../../os/atomic-file.ts';
import type { Clock } from '../../../os/clock.ts';
import { ioError } from '../../../os/io-error.ts';
import { isThere } from '../../../os/regular-file.ts';
import type { Driver, DriverContext } from '../../driver.ts';
import { diskCopy } from './disk-copy.ts';
import type { HostRun } from './disks.ts';
import type { Connection } from './guest.ts';
import { guestFreeze } from './guest-freeze.ts';
import type { Monitor } from './monitor.ts';
import type { QemuPlaces } from './places.ts';

export interface LiveCopyParts {
  places: Pick<QemuPlaces, 'data' | 'liveCopy'>;
  guest: Pick<Connection, 'run'>;
  monitor: Monitor;
  run: HostRun;
  clock: Clock;
  /** Whether a QEMU of this machine runs. */
  isAlive(): Promise<boolean>;
  /** Whether the guest runs and responds. */
  answers(signal: AbortSignal): Promise<boolean>;
  log: DriverContext['log'];
}

export interface LiveCopies {
  /** See `Driver.copyLive`. */
  copy: NonNullable<Driver['copyLive']>;
  /**
   * Ends what a killed service left: a running copy, a frozen file system. Does nothing during a copy of this process. Logs a failure; the
   * next observation retries.
   */
  settle(): Promise<void>;
}

/** Milliseconds for cleanup, which ignores the caller's signal. */
const UNDO_MS = 90_000;

/** Copies a running machine's data. A marker file records that a copy is in progress, for the next service. */
export function liveCopies(parts: LiveCopyParts): LiveCopies {
  const { places, guest, monitor, run, clock, isAlive, answers, log } = parts;
  const disk = diskCopy({ monitor, run, clock, isAlive });
  const freeze = guestFreeze(guest);
  let underway = false;
  let settling: Promise<void> | undefined;

  async function undo(targets: readonly string[]): Promise<void> {
    const signal = AbortSignal.timeout(UNDO_MS);
    try {
      if (await isAlive()) await disk.drop(signal);
    } finally {
      for (const target of targets) await rm(target, { recursive: true, force: true });
    }
    // A full target disk halts the guest on its next write. Space is free again.
    if ((await isAlive()) && (await monitor.status(signal)) === 'io-error') {
      await monitor.use((qmp) => qmp.execute('cont', undefined, { signal }), signal);
    }
    await rm(places.liveCopy, { force: true });
  }

  async function leftBehind(): Promise<void> {
    await undo([]);
    await freeze.thaw().catch(() => undefined);
    log('info', 'a copy of the data disk that nobody waits for was ended');
  }

  async function copyAll(
    copies: readonly { from: string; to: string }[],
    signal: AbortSignal,
    progress: (share: number) => void,
  ): Promise<void> {
    const data = copies.find(({ from }) => from === places.data);
    if (data) await disk.prepare(data.to, signal);
    await freeze.during(async () => {
      for (const { from, to } of copies) {
        if (from !== places.data && (await isThere(from))) await copyFile(from, to);
      }
      if (data) await disk.begin(signal);
    }, signal);
    if (data) await disk.finish(signal, progress);
  }

  return {
    async copy(copies, signal, progress = () => undefined) {
      if (underway) throw new RdError('ERR_DRIVER_FAILED', 'another copy of the machine is being made');
      underway = true;
      try {
        await settling;
        if (!(await isAlive()) || !(await answers(signal))) {
          throw new RdError('ERR_NOT_READY', 'the machine is not on, or does not answer');
        }
        const targets = copies.map(({ to }) => to);
        for (const target of targets) {
          if (await isThere(target)) throw new RdError('ERR_IO', `${target} is in the way`);
        }
        if (await isThere(places.liveCopy)) await leftBehind();
        await writeFileAtomic(places.liveCopy, 'A copy of the data disk is being made.\n');
        try {
          await copyAll(copies, signal, progress);
        } catch (error) {
          await undo(targets).catch((cause: unknown) => log('warn', 'a copy that failed is not yet undone', { cause }));
          throw error;
        }
        await rm(places.liveCopy, { force: true });
      } finally {
        underway = false;
      }
    },
    async settle() {
      if (underway || !(await isThere(places.liveCopy))) return;
      settling ??= leftBehind()
        .catch((error: unknown) => {
          log('warn', 'a copy of the data disk that nobody waits for could not be ended yet', { error });
        })
        .finally(() => {
          settling = undefined;
        });
      await settling;
    },
  };
}

async function copyFile(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, errorOnExist: true, force: false, preserveTimestamps: true }).catch(
    (cause: unknown) => {
      throw ioError('write', to, cause);
    },
  );
}
