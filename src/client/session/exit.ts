import { RdError } from '../../errors.ts';
import { type Clock, steadyClock } from '../../os/clock.ts';
import { waitingLine } from '../../os/waiting-line.ts';
import { type LockHolder, lockHolder } from '../../state/home-lock.ts';
import type { LifecycleClient, Server } from '../contract.ts';
import { SERVICE_STOP_MS } from '../home-service.ts';
import { type Caller, homeOf, isElsewhere, type SessionIo } from './home.ts';

export interface ExitingServiceOptions {
  /** Whether to print nothing to stderr. */
  quiet?: boolean;
  /** Returns the caller's remaining milliseconds. */
  leftMs?: () => number;
  clock?: Clock;
}

/** Milliseconds between two checks of a service that is waited for. */
export const LOOK_MS = 25;
/** Milliseconds after which a wait is reported. */
const QUIET_MS = 1000;

/** The service of this home, if it is exiting: it was asked to stop, or runs for a single command. */
export async function exitingService(io: SessionIo): Promise<LockHolder | undefined> {
  const holder = await lockHolder(homeOf(io).serviceLock);
  return holder?.alive && (holder.idle || holder.ending) ? holder : undefined;
}

/**
 * Whether a service that answered is staying: it is not exiting and has not exited since. `pid` is that of the service, if known. Another
 * application, or a service named explicitly, always counts as staying.
 */
export async function isStaying(
  { connection, backendState }: Server & Pick<LifecycleClient, 'backendState'>,
  { globals, io }: Caller,
  pid?: number,
): Promise<boolean> {
  if (globals.port || isElsewhere(connection, globals, io)) return true;
  const holder = await lockHolder(homeOf(io).serviceLock);
  if (holder?.alive && (holder.idle || holder.ending)) return false;
  if (holder?.alive && (pid === undefined ? holder.port === connection.port : holder.pid === pid)) return true;
  return backendState({ signal: io.signal }).then(
    () => true,
    () => false,
  );
}

/**
 * Waits until no service of this home is exiting: without limit for one that runs for a command, otherwise as long as a stop may take.
 * @throws RdError `ERR_CANCELLED` by the signal, `ERR_DEADLINE` when the caller's time is up, or for a hung service.
 */
export async function waitForOtherService(
  io: SessionIo,
  { quiet, leftMs, clock = steadyClock }: ExitingServiceOptions = {},
): Promise<void> {
  const line = waitingLine(io, { afterMs: QUIET_MS }, clock);
  let waiting: { on: string; since: number } | undefined;
  try {
    for (;;) {
      const holder = await exitingService(io);
      if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Nothing was started.');
      if (!holder) return;
      const on = reason(holder);
      if (waiting?.on !== on) {
        waiting = { on, since: clock.now() };
        line.interrupt();
        if (!quiet) io.err(`notice: ${on}; waiting for it to exit.\n`);
      }
      const waited = clock.now() - waiting.since;
      if (leftMs && leftMs() <= 0) {
        throw new RdError('ERR_DEADLINE', `the last service (pid ${holder.pid}) did not exit in time`, {
          advice: 'Wait for it, or use a longer --timeout.',
        });
      }
      if (holder.ending && waited >= SERVICE_STOP_MS) {
        throw hangs(
          `the last service (pid ${holder.pid}) was asked to stop but is still running`,
          hungServiceAdvice(holder.pid, io),
        );
      }
      if (waited >= QUIET_MS && !quiet)
        line.show(waitedText(`Waiting for service ${holder.pid} to exit`, waited, holder));
      await clock.sleep(LOOK_MS, io.signal);
    }
  } finally {
    line.end();
  }
}

function reason({ pid, ending }: LockHolder): string {
  return ending ? `The last service (pid ${pid}) is ending` : `Another command needs the backend off (service ${pid})`;
}

export interface ExitWait {
  lives(): Promise<boolean>;
  io: SessionIo;
  /** Prefix, before the duration, of the message for a hung service. */
  late: string;
  /** Message while waiting: shown on a terminal; elsewhere printed when it takes long. */
  waiting: string;
  /** Message when a signal aborts the wait; without it, signals do not. */
  cancelled?: string;
  advice: string;
  quiet?: boolean;
  clock?: Clock;
}

/**
 * Waits for a service to exit, as long as a stop may take.
 * @throws RdError `ERR_DEADLINE` for a hung service, `ERR_CANCELLED` by the signal.
 */
export async function waitForExit(wait: ExitWait): Promise<void> {
  const { lives, io, late, waiting, cancelled, quiet, clock = steadyClock } = wait;
  const line = waitingLine(io, { afterMs: QUIET_MS }, clock);
  const begun = clock.now();
  try {
    while (await lives()) {
      if (io.signal.aborted && cancelled !== undefined) throw new RdError('ERR_CANCELLED', cancelled);
      const waited = clock.now() - begun;
      if (waited >= SERVICE_STOP_MS) throw hangs(late, wait.advice);
      if (waited >= QUIET_MS && !quiet) line.show(waitedText(waiting, waited, { ending: true }));
      await (cancelled === undefined ? clock.sleep(LOOK_MS) : clock.sleep(LOOK_MS, io.signal));
    }
  } finally {
    line.end();
  }
}

function waitedText(waiting: string, ms: number, { ending }: Pick<LockHolder, 'ending'>): string {
  const limit = ending ? ` of at most ${SERVICE_STOP_MS / 1000} s` : '';
  return `${waiting}: ${Math.floor(ms / 1000)} s${limit} …`;
}

function hangs(late: string, advice: string): RdError {
  return new RdError('ERR_DEADLINE', `${late} after ${SERVICE_STOP_MS / 1000} s`, { advice });
}

/** Advice for a hung service of this home. */
export function hungServiceAdvice(pid: number, io: SessionIo): string {
  const kill = io.platform === 'win32' ? `taskkill /F /PID ${pid}` : `kill -9 ${pid}`;
  return `Check the logs in ${homeOf(io).logs}. To force it to exit, run \`${kill}\`. Then \`rdctl start\` takes over what it left running, \`rdctl shutdown\` stops it, and \`rdctl factory-reset\` stops and removes it.`;
}

/**
 * Stops a service that a command started for itself, and waits for it to exit.
 * @throws RdError `ERR_DEADLINE` when it hangs.
 */
export async function stopOwnService(
  client: Pick<LifecycleClient, 'shutdown'>,
  pid: number,
  { io, quiet }: { io: SessionIo; quiet: boolean },
): Promise<void> {
  // Another command may have started its own service since.
  const lives = async () => {
    const holder = await lockHolder(homeOf(io).serviceLock);
    return holder?.alive === true && holder.pid === pid;
  };
  await client.shutdown().catch(async (error: unknown) => {
    if (await lives()) throw error;
  });
  await waitForExit({
    lives,
    io,
    quiet,
    late: `the service that was started for this (pid ${pid}) was asked to stop but is still running`,
    waiting: `Waiting for service ${pid} to exit`,
    advice: hungServiceAdvice(pid, io),
  });
}
