import type { Client } from '../src/client/client.ts';
import { RdError } from '../src/errors.ts';
import { type Pace, realPace } from '../src/process/pace.ts';
import { type LockHolder, lockHolder } from '../src/storage/home-lock.ts';
import { homeOf, namesService } from './absence.ts';
import type { Caller } from './asking.ts';
import type { Io } from './command.ts';

export interface LeavingOptions {
  /** Nothing goes to stderr. */
  quiet?: boolean;
  /** What the caller has left, in milliseconds; without it, it waits as long as it takes. */
  leftMs?: () => number;
  pace?: Pace;
}

const LOOK_MS = 40;

/** The service of this home, when it does not stay: it was asked to stop, or works for one command, which ends it. */
export async function leavingService(io: Io): Promise<LockHolder | undefined> {
  const holder = await lockHolder(homeOf(io).serviceLock);
  return holder?.alive && (holder.idle || holder.ending) ? holder : undefined;
}

/**
 * Whether a service that has answered goes on: it is not about to end, and has not ended since. `pid`: of the service, where it is
 * known. Another application, and a service that was named, are taken as they are.
 */
export async function stays(
  { connection, backendState }: Client,
  { globals, io }: Caller,
  pid?: number,
): Promise<boolean> {
  if (connection.foreign || globals.port || namesService(globals, io)) return true;
  const holder = await lockHolder(homeOf(io).serviceLock);
  if (holder?.alive && (holder.idle || holder.ending)) return false;
  if (holder?.alive && (pid === undefined ? holder.port === connection.port : holder.pid === pid)) return true;
  return backendState({ signal: io.signal }).then(
    () => true,
    () => false,
  );
}

/**
 * Waits until no service of this home is about to end.
 * @throws RdError `ERR_CANCELLED` by the signal, `ERR_DEADLINE` when the time of the caller is over.
 */
export async function othersEnd(io: Io, { quiet, leftMs, pace = realPace }: LeavingOptions = {}): Promise<void> {
  let told: number | undefined;
  for (;;) {
    const holder = await leavingService(io);
    if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Nothing was begun.');
    if (!holder) return;
    if (told !== holder.pid && !quiet) io.err(`notice: ${reason(holder)}; waiting for its end.\n`);
    told = holder.pid;
    if (leftMs && leftMs() <= 0) {
      throw new RdError('ERR_DEADLINE', `the last service (pid ${holder.pid}) has not ended in time`, {
        advice: 'Wait for it, or give more time with --timeout.',
      });
    }
    await pace.sleep(LOOK_MS, io.signal);
  }
}

function reason({ pid, ending }: LockHolder): string {
  return ending
    ? `The last service (pid ${pid}) is stopping`
    : `Another command works on the snapshots (service ${pid})`;
}
