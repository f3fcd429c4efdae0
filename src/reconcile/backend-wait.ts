import { OPERATION_CANCELED, RdError } from '../errors.ts';
import { type Clock, systemClock } from '../os/clock.ts';
import type { LogFile } from '../os/log-file.ts';
import { COMPATIBLE } from '../product.ts';
import type { Controllers, Desired, LoopStatus } from './contract.ts';

type Watched = Pick<Controllers, 'status' | 'look' | 'onChange'>;

/** Waits until the status matches and a fresh observation confirms it. `action` completes "the backend did not …". */
export async function waitForConfirmedStatus(
  controllers: Watched,
  is: (status: LoopStatus) => boolean,
  action: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await statusMatches(controllers, (status) => is(status) || status.backendState === 'ERROR', signal);
    const status = controllers.status();
    if (status.backendState === 'ERROR') throw backendError(status, action);
    if ((await controllers.look(signal)) && is(controllers.status())) return;
    if (signal.aborted) throw cancelledError();
  }
}

/** Waits until the status matches. @throws RdError `ERR_CANCELLED` by the signal. */
export function statusMatches(
  controllers: Pick<Controllers, 'status' | 'onChange'>,
  is: (status: LoopStatus) => boolean,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(cancelledError());
    if (is(controllers.status())) return resolve();
    const end = () => {
      stop();
      signal.removeEventListener('abort', abort);
    };
    const abort = () => {
      end();
      reject(cancelledError());
    };
    const stop = controllers.onChange((status) => {
      if (!is(status)) return;
      end();
      resolve();
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}

/**
 * Waits until the status matches, with a time limit.
 * @returns false when the limit passes.
 * @throws RdError `ERR_CANCELLED` by the signal.
 */
export async function statusMatchesInTime(
  controllers: Pick<Controllers, 'status' | 'onChange'>,
  is: (status: LoopStatus) => boolean,
  { clock, limitMs, signal }: { clock: Clock; limitMs: number; signal: AbortSignal },
): Promise<boolean> {
  const ended = new AbortController();
  const end = AbortSignal.any([signal, ended.signal]);
  try {
    return await Promise.race([
      statusMatches(controllers, is, end).then(() => true),
      clock.sleep(limitMs, end).then(() => {
        if (signal.aborted) throw cancelledError();
        return false;
      }),
    ]);
  } finally {
    ended.abort();
  }
}

function backendError(status: LoopStatus, action: string): RdError {
  return new RdError('ERR_DRIVER_FAILED', `the backend did not ${action}: ${failureOf(status)}`);
}

function cancelledError(): RdError {
  return new RdError('ERR_CANCELLED', OPERATION_CANCELED);
}

/** Returns the reason for a failure, as given by the status. */
export function failureOf({ conditions }: LoopStatus): string {
  return conditions.find(({ type }) => type === 'Converged')?.message ?? 'the status says why';
}

/** Returns the part that a backend that has not converged is waiting for, as `start --wait` names it: a part before the whole. */
export function missingIn({ conditions }: Pick<LoopStatus, 'conditions'>): string {
  const open = conditions.filter(({ concern }) => concern !== 'none');
  const { type, reason, message } = open.find((each) => each.type !== 'Converged') ?? open[0] ?? {};
  return type === undefined ? 'the status says why' : `${type}: ${reason}. ${message}`;
}

/** Waits for the loop before and after work on the data of the backend. */
export interface BackendRest {
  /**
   * Waits while the backend starts or stops.
   * @throws RdError `ERR_SNAPSHOT` when that takes too long, `ERR_CANCELLED` by the signal.
   */
  begin(action: string, signal: AbortSignal): Promise<void>;
  /**
   * Waits, for a limited time, until the backend has settled, and observes it.
   * @returns whether it is on and converged. @throws RdError `ERR_CANCELLED` by the signal.
   */
  isSteady(signal: AbortSignal): Promise<boolean>;
  /**
   * Waits, for a limited time, until the backend has converged again or failed. Returns early when the service stops.
   * @throws RdError `ERR_CANCELLED` by the signal.
   */
  end(signal: AbortSignal): Promise<void>;
}

export interface BackendRestInput {
  controllers: Pick<Controllers, 'status' | 'onChange' | 'look'>;
  /** The part of `Maintenance` that is needed here. */
  maintenance: { heldBy(): string | undefined; readonly idle: boolean };
  desired(): Desired;
  log: LogFile['write'];
  closing: AbortSignal;
  clock?: Clock;
}

const MINUTE = 60_000;
const BEGIN_LIMIT = 2 * MINUTE;
/** Time limit of `end` and of `start --wait`, in milliseconds. */
export const END_LIMIT = 10 * MINUTE;

export function createBackendRest(input: BackendRestInput): BackendRest {
  const { controllers, maintenance, desired, log, closing, clock = systemClock } = input;

  function isBack({ generation, converged, backendState }: LoopStatus): boolean {
    if (generation !== desired().generation) return false;
    if (backendState === 'ERROR') return true;
    return maintenance.idle || maintenance.heldBy() !== undefined ? backendState === 'STOPPED' : converged;
  }

  return {
    async begin(action, signal) {
      if (await statusMatchesInTime(controllers, isAtRest, { clock, limitMs: BEGIN_LIMIT, signal })) return;
      const { backendState } = controllers.status();
      // The compatible application uses this text, without waiting first.
      throw new RdError(
        'ERR_SNAPSHOT',
        `${COMPATIBLE.productName} state is ${backendState}. It must be fully running or fully shut down to perform the action: ${action}`,
        {
          advice: `It has been so for ${BEGIN_LIMIT / MINUTE} minutes, and \`rdctl status\` says why. Try again when that is over, or after \`rdctl shutdown\`.`,
        },
      );
    },
    async isSteady(signal) {
      if (maintenance.idle || maintenance.heldBy() !== undefined) return false;
      await statusMatchesInTime(controllers, isSettled, { clock, limitMs: BEGIN_LIMIT, signal });
      if (!(await controllers.look(signal))) {
        if (signal.aborted) throw cancelledError();
        return false;
      }
      const { converged, machine, generation } = controllers.status();
      return converged && generation === desired().generation && machine.state === 'on';
    },
    async end(signal) {
      const either = AbortSignal.any([signal, closing]);
      try {
        const inTime = await statusMatchesInTime(controllers, isBack, { clock, limitMs: END_LIMIT, signal: either });
        if (!inTime) log('warn', 'the backend is not back yet after work on its data');
      } catch (error) {
        if (!closing.aborted) throw error;
      }
    },
  };
}

/** True if no transition is in progress. */
function isSettled({ converged, backendState }: LoopStatus): boolean {
  return converged || backendState === 'STOPPED' || backendState === 'ERROR';
}

/** True if no start or stop is in progress. A failed backend can be stopped like any other. */
function isAtRest({ backendState }: LoopStatus): boolean {
  return backendState !== 'STARTING' && backendState !== 'STOPPING';
}
