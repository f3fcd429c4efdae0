import { statSync } from 'node:fs';
import { uptime } from 'node:os';
import { homeMovedError } from '../os/directory-identity.ts';
import { processTable } from '../os/process-table.ts';
import { backendLock } from '../state/backend-lock.ts';
import { type LockHolder, lockHolder } from '../state/home-lock.ts';
import { lockStanding } from '../state/lock-standing.ts';
import type { Places } from '../state/places.ts';
import { driversToStop } from '../state/state-file.ts';

/** The state of a home's service according to its lock, independent of any listener. */
export type HomeService =
  /**
   * No service is alive, and nothing real is left running. `cut`: the last one was not stopped. It was killed, and a
   * simulation may still claim to run, or the computer was rebooted.
   */
  | { kind: 'none'; cut?: 'killed' | 'reboot' }
  /**
   * The last service exited without stopping its backend, which may still run. `interrupted`: the operation on the
   * backend's data that it was performing, for which the backend may have been stopped.
   */
  | { kind: 'left'; driver: string; pid?: number; interrupted?: string }
  /** A live service that is starting or stopping: its connection file is not there yet, or it was asked to stop. */
  | { kind: 'passing'; holder: LockHolder }
  /** A live service that has written its connection file. */
  | { kind: 'running'; holder: LockHolder };

/** Name of the driver that leaves no processes behind. */
const SIMULATED = 'simulated';

/**
 * Reads the lock and the files of a home; contacts no service and changes nothing.
 * @throws RdError `ERR_IO` for unreadable files, `ERR_HOME_MOVED` when the service or its remains were started under
 * another path.
 */
export async function homeService(where: Places, now: number = Date.now()): Promise<HomeService> {
  const holder = await lockHolder(where.serviceLock);
  if (holder?.alive) return { kind: holder.announced && !holder.ending ? 'running' : 'passing', holder };
  // The connection file beside a copied lock is a copy, too.
  if (!holder && lockStanding(where.serviceLock) === 'copied') return { kind: 'none' };
  // A clean shutdown removes both lock and connection file.
  const since = holder?.startedAt === undefined ? modifiedAt(where.connectionFile) : Date.parse(holder.startedAt);
  if (since === undefined) return { kind: 'none' };
  if (since < now - uptime() * 1000) return { kind: 'none', cut: 'reboot' };
  const drivers = await driversToStop(where);
  const driver = drivers.find((each) => each !== SIMULATED) ?? drivers[0];
  if (driver === undefined) return { kind: 'none' };
  if (driver === SIMULATED && !holder?.left) return { kind: 'none', cut: 'killed' };
  if (holder?.movedFrom !== undefined && (await isOfThisBoot(holder))) {
    throw homeMovedError(holder.movedFrom, where.serviceLock, { pid: holder.pid, alive: false });
  }
  const work = await backendLock(where.backendLock).read();
  return {
    kind: 'left',
    driver,
    ...(holder ? { pid: holder.pid } : {}),
    ...(work?.abandoned && work.action !== undefined ? { interrupted: work.action } : {}),
  };
}

/** True for a live service that was asked to stop: it answers no more, and the next one waits for it. */
export function isEnding(home: HomeService): boolean {
  return home.kind === 'passing' && home.holder.ending === true;
}

/** True when the last service's backend may be running, or is recorded as running. */
export function mayRun(home: HomeService): boolean {
  return home.kind === 'left' || (home.kind === 'none' && home.cut === 'killed');
}

/** True when the last service was not stopped, so its desired power still applies. */
export function wasUnclean(home: HomeService): boolean {
  return home.kind === 'left' || (home.kind === 'none' && home.cut !== undefined);
}

/** Whether a lock was taken since this computer's last boot; false in a home that was copied from another computer. */
async function isOfThisBoot({ started }: LockHolder): Promise<boolean> {
  const self = await processTable.self();
  return started?.split(':')[0] === self.started?.split(':')[0];
}

/** Returns the modification time in milliseconds since the epoch; undefined for an inaccessible file. */
function modifiedAt(path: string): number | undefined {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return undefined;
  }
}

/** Milliseconds that a stopping service waits for its backend, and again for cancelled work on it. */
export const BACKEND_STOP_MS = 60_000;

/**
 * Milliseconds after which a stopping service counts as hung: both waits for the backend, and as much again for
 * everything else.
 */
export const SERVICE_STOP_MS = 3 * BACKEND_STOP_MS;
