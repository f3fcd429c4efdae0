import { statSync } from 'node:fs';
import { uptime } from 'node:os';
import { backendLock } from '../storage/backend-lock.ts';
import { type LockHolder, lockHolder } from '../storage/home-lock.ts';
import { homeMoved } from '../storage/home-move.ts';
import { lockStanding } from '../storage/lock-place.ts';
import type { Places } from '../storage/places.ts';
import { processTable } from '../storage/process-identity.ts';
import { loadState } from '../storage/state-file.ts';

/** What the lock of a home tells about its service, whoever answers on a port. */
export type HomeService =
  /**
   * None lives, and none has left anything real behind. `cut`: nobody stopped the last one. It was killed, and a model of what ran may
   * still say that it does, or it ended with the computer.
   */
  | { kind: 'none'; cut?: 'killed' | 'reboot' }
  /**
   * The last one ended and did not stop what it ran, so that it may still run. `interrupted`: what it was doing with the data of the
   * backend, which may have been stopped for that.
   */
  | { kind: 'left'; driver: string; pid?: number; interrupted?: string }
  /** One lives that is starting or stopping: its connection file is not there yet, or it was asked to stop. */
  | { kind: 'passing'; holder: LockHolder }
  /** One lives, and has written its connection file. */
  | { kind: 'running'; holder: LockHolder };

/** What it runs is nothing that could stay. */
const SIMULATED = 'simulated';

/**
 * Asks the lock and the files of a home; contacts nobody and changes nothing.
 * @throws RdError `ERR_IO` for what cannot be read, `ERR_HOME_MOVED` when the service or what it left was started somewhere else.
 */
export async function homeService(where: Places, now: number = Date.now()): Promise<HomeService> {
  const holder = await lockHolder(where.serviceLock);
  if (holder?.alive) return { kind: holder.announced && !holder.ending ? 'running' : 'passing', holder };
  // The connection file beside it is a copy, too.
  if (!holder && lockStanding(where.serviceLock) === 'copied') return { kind: 'none' };
  // Both are taken away by a service that ends in order.
  const since = holder?.startedAt === undefined ? modified(where.connectionFile) : Date.parse(holder.startedAt);
  if (since === undefined) return { kind: 'none' };
  if (since < now - uptime() * 1000) return { kind: 'none', cut: 'reboot' };
  const state = await loadState(where.stateFile);
  if (state.kind !== 'loaded') return { kind: 'none' };
  if (state.state.driver === SIMULATED && !holder?.left) return { kind: 'none', cut: 'killed' };
  if (holder?.movedFrom !== undefined && (await isOfThisBoot(holder))) {
    throw homeMoved(holder.movedFrom, where.serviceLock, { pid: holder.pid, alive: false });
  }
  const work = await backendLock(where.backendLock).read();
  return {
    kind: 'left',
    driver: state.state.driver,
    ...(holder ? { pid: holder.pid } : {}),
    ...(work?.abandoned && work.action !== undefined ? { interrupted: work.action } : {}),
  };
}

/** True when the backend of the last service may run, or be taken for running. */
export function mayRun(home: HomeService): boolean {
  return home.kind === 'left' || (home.kind === 'none' && home.cut === 'killed');
}

/** True when nobody stopped the last service: what was to run still is to. */
export function wasCut(home: HomeService): boolean {
  return home.kind === 'left' || (home.kind === 'none' && home.cut !== undefined);
}

/** A home that came from another computer has a lock of another boot. */
async function isOfThisBoot({ started }: LockHolder): Promise<boolean> {
  const self = await processTable.self();
  return started?.split(':')[0] === self.started?.split(':')[0];
}

/** Milliseconds since the epoch; `undefined` for a file that cannot be seen. */
function modified(path: string): number | undefined {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return undefined;
  }
}
