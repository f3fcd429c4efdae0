import { LOCKED, messageOf, RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { LogFile } from '../os/log-file.ts';
import { waitForConfirmedStatus } from './backend-wait.ts';
import type { Controllers, Desired, Hold, LoopStatus } from './contract.ts';

/** The operations available to work on the data of the stopped backend. */
export interface MaintenanceWork {
  /** Aborted by the caller's signal, and when the service stops. */
  signal: AbortSignal;
  /** Sets the activity that `doing` and the condition `Converged` of a held backend report from now on: `copying 1.2 GiB`. */
  progress(doing: string): void;
  /** Makes the loop delete the data of the cluster; the rest of the backend runs from then on. */
  resetCluster(): Promise<void>;
  /** Keeps the backend off after the work until the service restarts, because its data is incomplete. */
  keepOff(reason: string): void;
}

/** The lock file, which shows other programs that the backend is being worked on. */
export interface MaintenanceLock {
  /** True if the file exists, whatever its content. */
  isHeld(): Promise<boolean>;
  /** Creates the file. @throws RdError `ERR_BACKEND_LOCKED` when it already exists, `ERR_IO`. */
  take(action: string): Promise<void>;
  /** Removes the file, unless another process owns it by now. */
  release(): Promise<void>;
}

/** The operations available to work beside the running backend. */
type LiveWork = Pick<MaintenanceWork, 'signal' | 'progress'>;

/** Keeps the backend stopped while something works on its data, and holds the lock file of the compatible tool meanwhile. */
export interface Maintenance {
  /**
   * Takes the lock file, stops the backend, does the work, and lets the backend converge to the desired state. Settings and power that are
   * written meanwhile take effect after it. `action` is for people: `Creating snapshot "x"`.
   * @throws RdError `ERR_BACKEND_LOCKED` when the lock file exists or other work is in progress, `ERR_CANCELLED` by the signal,
   * `ERR_DRIVER_FAILED` when the backend does not stop, and what the work throws.
   */
  run<T>(action: string, signal: AbortSignal, work: (work: MaintenanceWork) => Promise<T>): Promise<T>;
  /**
   * Takes the lock file and does the work while the backend keeps running as it is. Settings and power that are written meanwhile take effect after
   * it.
   * @throws RdError `ERR_BACKEND_LOCKED` when the lock file exists or other work is in progress, `ERR_CANCELLED` by the signal, and any error that
   * the work throws.
   */
  runLive<T>(action: string, signal: AbortSignal, work: (work: LiveWork) => Promise<T>): Promise<T>;
  /** Passes the desired state from the store to the controllers, with the hold in force. */
  desire(next: Desired): void;
  /** Returns the reason that the backend is kept off now: a sentence for people. */
  heldBy(): string | undefined;
  /** Returns the current activity: a sentence for people. */
  doing(): string | undefined;
  /** The backend never runs in this service. */
  readonly idle: boolean;
  /** Aborts the current work and waits for its end. A stopped backend stays stopped. */
  close(): Promise<void>;
}

export interface MaintenanceInput {
  lock: MaintenanceLock;
  controllers: Pick<Controllers, 'desire' | 'status' | 'look' | 'onChange'>;
  /** Returns the latest desired state of the store. */
  desired(): Desired;
  clock: Clock;
  log: LogFile['write'];
  /** Called when work has begun, and when it has ended; `error`: it failed. */
  onWork?(work: { action: string; state: 'begun' | 'ended'; error?: string }): void;
  /** In force when no other hold is: the service exists only for maintenance. */
  idle?: Hold;
  /** In force from the start: with `lock` while the lock file exists, with `service` until the service ends. */
  initialHold?: { hold: Hold; lasts: 'lock' | 'service' };
}

/** Interval of checks whether a lock found at the start is gone, in milliseconds. */
const POLL_MS = 1000;

/** Returns the hold for a lock file found at the start. */
export function holdOfLock(action: string | undefined): Hold {
  const who = action === undefined ? 'its lock file is there' : `its lock file says: ${action}`;
  return {
    keep: 'off',
    reason: `The backend waits: ${who}. If no snapshot operation is in progress, free it with \`rdctl snapshot unlock\`.`,
  };
}

/** The hold of a service that one command started for itself. */
export const IDLE: Hold = {
  keep: 'off',
  reason: 'This service was started for one command and exits with it; the backend stays off.',
};

export function createMaintenance(input: MaintenanceInput): Maintenance {
  const { lock, controllers, clock, log, onWork = () => undefined } = input;
  const closing = new AbortController();
  let hold = input.initialHold?.hold;
  let underway: Promise<unknown> | undefined;
  /** The desired state changed while the hold keeps the backend as it is. */
  let hasPendingChange = false;
  let task: string | undefined;
  const watching = input.initialHold?.lasts === 'lock' ? watch() : Promise.resolve();

  function holdWith(next: Hold | undefined): void {
    hold = next;
    desire(input.desired());
  }

  function desire({ hold: _, ...next }: Desired): void {
    const inForce = hold ?? input.idle;
    hasPendingChange = inForce?.keep === 'as it is';
    controllers.desire(inForce ? { ...next, hold: inForce } : next);
  }

  /** Releases the hold when the file is gone. */
  async function watch(): Promise<void> {
    while (!closing.signal.aborted && (await lock.isHeld())) await clock.sleep(POLL_MS, closing.signal);
    if (closing.signal.aborted) return;
    log('info', 'the lock of the backend is gone');
    holdWith(undefined);
  }

  async function withLock<T>(
    action: string,
    signal: AbortSignal,
    work: (work: MaintenanceWork) => Promise<T>,
  ): Promise<T> {
    log('info', 'maintenance begins', { action });
    const off = (doing: string): Hold => {
      task = `${action}: ${doing}.`;
      return { keep: 'off', reason: task };
    };
    let forever: Hold | undefined;
    try {
      holdWith(off('stopping the backend'));
      await waitForConfirmedStatus(controllers, ({ backendState }) => backendState === 'STOPPED', 'stop', signal);
      return await work({
        signal,
        progress: (doing) => holdWith(off(doing)),
        async resetCluster() {
          task = `${action}: deleting the data of the cluster.`;
          holdWith({ keep: 'cluster reset', reason: task });
          await waitForConfirmedStatus(controllers, isWithoutCluster, 'delete the data of its cluster', signal);
        },
        keepOff: (reason) => {
          forever = { keep: 'off', reason, damaged: true };
        },
      });
    } finally {
      if (forever) holdWith(forever);
      else await unlock(action);
    }
  }

  async function withBackendRunning<T>(
    action: string,
    signal: AbortSignal,
    work: (work: LiveWork) => Promise<T>,
  ): Promise<T> {
    log('info', 'maintenance begins, and the backend keeps running', { action });
    const progress = (doing: string) => {
      // The loop learns of this hold only with a change that has to wait.
      task = `${action}: ${doing}.`;
      hold = { keep: 'as it is', reason: `${task} What has been changed since takes effect after it.` };
    };
    try {
      progress('the backend keeps running');
      return await work({ signal, progress });
    } finally {
      await unlock(action);
    }
  }

  async function unlock(action: string): Promise<void> {
    const wasOff = hold?.keep !== 'as it is';
    // Release the hold even if the file cannot be removed; otherwise only a restart would help.
    await lock.release().catch((error: unknown) => log('error', 'the lock file stays', { error }));
    if (closing.signal.aborted) log('info', 'maintenance ends with the service', { action });
    else if (wasOff || hasPendingChange) holdWith(undefined);
    else hold = undefined;
  }

  async function reportWork<T>(action: string, work: () => Promise<T>): Promise<T> {
    await lock.take(action);
    onWork({ action, state: 'begun' });
    try {
      const result = await work();
      onWork({ action, state: 'ended' });
      return result;
    } catch (error) {
      onWork({ action, state: 'ended', error: messageOf(error) });
      throw error;
    }
  }

  async function exclusively<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    // There is no lock file to remove.
    if (hold?.damaged) throw new RdError('ERR_BACKEND_LOCKED', 'the backend is kept off', { advice: hold.reason });
    if (underway || hold) throw new RdError('ERR_BACKEND_LOCKED', LOCKED);
    const running = work(AbortSignal.any([signal, closing.signal]));
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    underway = ended;
    try {
      return await running;
    } finally {
      underway = undefined;
      task = undefined;
    }
  }

  return {
    desire,
    idle: input.idle !== undefined,
    doing: () => task,
    heldBy: () => (hold?.keep === 'as it is' ? undefined : hold?.reason),
    run: (action, signal, work) =>
      exclusively(signal, (either) => reportWork(action, () => withLock(action, either, work))),
    runLive: (action, signal, work) =>
      exclusively(signal, (either) => reportWork(action, () => withBackendRunning(action, either, work))),
    async close() {
      closing.abort();
      await Promise.all([underway, watching]);
    },
  };
}

function isWithoutCluster({ backendState, cluster }: LoopStatus): boolean {
  return backendState === 'STARTING' && (cluster.state === 'absent' || cluster.state === 'unsupported');
}
