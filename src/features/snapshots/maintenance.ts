import { RdError } from '../../errors.ts';
import type { Clock } from '../../os/clock.ts';
import type { LogFile } from '../../os/log-file.ts';
import type { Controllers, Desired, Hold, LoopStatus } from '../../reconcile/contract.ts';
import { type BackendLock, LOCKED } from '../../state/backend-lock.ts';
import { reached } from './backend-wait.ts';

/** What work on the data of the stopped backend is given. */
export interface MaintenanceWork {
  /** Aborted by the caller's signal, and when the service stops. */
  signal: AbortSignal;
  /** Told from now on by `doing`, and by the condition `Converged` of a backend that is held: `copying 1.2 GiB`. */
  progress(doing: string): void;
  /** Has the data of the cluster deleted by the loop; the rest of the backend runs from then on. */
  resetCluster(): Promise<void>;
  /** The backend stays off after the work, however it ends, until the service starts again: its data is not whole. */
  keepOff(reason: string): void;
}

/** What work beside the running backend is given. */
type WorkAlongside = Pick<MaintenanceWork, 'signal' | 'progress'>;

/** Keeps the backend stopped while something works on its data, and the lock file of the compatible tool beside it. */
export interface Maintenance {
  /**
   * Takes the lock file, stops the backend, does the work, and lets the backend become what is wished for. Settings and power may be
   * written meanwhile; they count from the end on. `action` is for people: `Creating snapshot "x"`.
   * @throws RdError `ERR_BACKEND_LOCKED` when the lock file is there or other work is under way, `ERR_CANCELLED` by the signal,
   * `ERR_DRIVER_FAILED` when the backend does not stop, and what the work throws.
   */
  run<T>(action: string, signal: AbortSignal, work: (work: MaintenanceWork) => Promise<T>): Promise<T>;
  /**
   * Takes the lock file and does the work while the backend goes on as it is. Settings and power that are written meanwhile count from
   * the end on.
   * @throws RdError `ERR_BACKEND_LOCKED` as `run`, `ERR_CANCELLED` by the signal, and what the work throws.
   */
  alongside<T>(action: string, signal: AbortSignal, work: (work: WorkAlongside) => Promise<T>): Promise<T>;
  /** Stands between the store and the controllers: what the store accepts goes on with the hold that is in force. */
  desire(next: Desired): void;
  /** Something keeps the backend off now: a sentence for people. */
  heldBy(): string | undefined;
  /** What is being done: a sentence for people. */
  doing(): string | undefined;
  /** The backend never runs in this service. */
  readonly idle: boolean;
  /** Aborts what is under way and waits for its end. The backend is left stopped where it was. */
  close(): Promise<void>;
}

export interface MaintenanceInput {
  lock: BackendLock;
  controllers: Pick<Controllers, 'desire' | 'status' | 'look' | 'onChange'>;
  /** The desired state that the store has accepted last. */
  desired(): Desired;
  clock: Clock;
  log: LogFile['write'];
  /** In force whenever nothing else is: the service is there for maintenance alone. */
  idle?: Hold;
  /** In force from the start on: `lock`: while the lock file is there, `service`: to the end of the service. */
  found?: { hold: Hold; lasts: 'lock' | 'service' };
}

/** How often a service looks whether a lock that it found is gone. */
const POLL_MS = 1000;

/** The hold that a lock file found at the start is the reason of. */
export function holdOfLock(action: string | undefined): Hold {
  const who = action === undefined ? 'its lock file is there' : `its lock file says: ${action}`;
  return {
    keep: 'off',
    reason: `The backend waits: ${who}. If no snapshot operation is in progress, free it with \`rdctl snapshot unlock\`.`,
  };
}

/** The hold of a service that one command has started for itself. */
export const IDLE: Hold = {
  keep: 'off',
  reason: 'This service was started for one command and exits with it; the backend stays off.',
};

export function createMaintenance(input: MaintenanceInput): Maintenance {
  const { lock, controllers, clock, log } = input;
  const closing = new AbortController();
  let hold = input.found?.hold;
  let underway: Promise<unknown> | undefined;
  /** Something was wished for while the backend was to go on as it is. */
  let waits = false;
  let task: string | undefined;
  const watching = input.found?.lasts === 'lock' ? watch() : Promise.resolve();

  function holdWith(next: Hold | undefined): void {
    hold = next;
    desire(input.desired());
  }

  function desire({ hold: _, ...next }: Desired): void {
    const inForce = hold ?? input.idle;
    waits = inForce?.keep === 'as it is';
    controllers.desire(inForce ? { ...next, hold: inForce } : next);
  }

  /** Ends when the file that was found is gone. */
  async function watch(): Promise<void> {
    while (!closing.signal.aborted && (await lock.isHeld())) await clock.sleep(POLL_MS, closing.signal);
    if (closing.signal.aborted) return;
    log('info', 'the lock of the backend is gone');
    holdWith(undefined);
  }

  async function locked<T>(
    action: string,
    signal: AbortSignal,
    work: (work: MaintenanceWork) => Promise<T>,
  ): Promise<T> {
    await lock.take(action);
    log('info', 'maintenance begins', { action });
    const off = (doing: string): Hold => {
      task = `${action}: ${doing}.`;
      return { keep: 'off', reason: task };
    };
    let forever: Hold | undefined;
    try {
      holdWith(off('stopping the backend'));
      await reached(controllers, ({ backendState }) => backendState === 'STOPPED', 'stop', signal);
      return await work({
        signal,
        progress: (doing) => holdWith(off(doing)),
        async resetCluster() {
          holdWith({ keep: 'cluster reset', reason: `${action}: deleting the data of the cluster.` });
          await reached(controllers, isWithoutCluster, 'delete the data of its cluster', signal);
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

  async function beside<T>(action: string, signal: AbortSignal, work: (work: WorkAlongside) => Promise<T>): Promise<T> {
    await lock.take(action);
    log('info', 'maintenance begins, and the backend goes on', { action });
    const progress = (doing: string) => {
      // Told to the loop only with a wish that has to wait: without one it has nothing to know.
      task = `${action}: ${doing}.`;
      hold = { keep: 'as it is', reason: `${task} What has been changed since takes effect after it.` };
    };
    try {
      progress('the backend goes on as it is');
      return await work({ signal, progress });
    } finally {
      await unlock(action);
    }
  }

  async function unlock(action: string): Promise<void> {
    const wasOff = hold?.keep !== 'as it is';
    // The hold comes off even when the file cannot be removed: otherwise only a restart would help.
    await lock.release().catch((error: unknown) => log('error', 'the lock file stays', { error }));
    if (closing.signal.aborted) log('info', 'maintenance ends with the service', { action });
    else if (wasOff || waits) holdWith(undefined);
    else hold = undefined;
  }

  async function exclusively<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    // No file is there that could be removed.
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
    run: (action, signal, work) => exclusively(signal, (either) => locked(action, either, work)),
    alongside: (action, signal, work) => exclusively(signal, (either) => beside(action, either, work)),
    async close() {
      closing.abort();
      await Promise.all([underway, watching]);
    },
  };
}

function isWithoutCluster({ backendState, cluster }: LoopStatus): boolean {
  return backendState === 'STARTING' && (cluster.state === 'absent' || cluster.state === 'unsupported');
}
