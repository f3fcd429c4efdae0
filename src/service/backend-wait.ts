import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Controllers, LoopStatus } from '../reconcile/contract.ts';

type Watched = Pick<Controllers, 'status' | 'look' | 'onChange'>;

/** Resolves when a look that began after it was first seen shows the same. `deed` completes "the backend did not …". */
export async function reached(
  controllers: Watched,
  is: (status: LoopStatus) => boolean,
  deed: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await changed(controllers, (status) => is(status) || status.backendState === 'ERROR', signal);
    const status = controllers.status();
    if (status.backendState === 'ERROR') throw failed(status, deed);
    if ((await controllers.look(signal)) && is(controllers.status())) return;
    if (signal.aborted) throw cancelled();
  }
}

/** Resolves when the status is as asked for. */
export function changed(
  controllers: Pick<Controllers, 'status' | 'onChange'>,
  is: (status: LoopStatus) => boolean,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(cancelled());
    if (is(controllers.status())) return resolve();
    const end = () => {
      stop();
      signal.removeEventListener('abort', abort);
    };
    const abort = () => {
      end();
      reject(cancelled());
    };
    const stop = controllers.onChange((status) => {
      if (!is(status)) return;
      end();
      resolve();
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}

/** As `changed`, for a limited time. @returns false when that has passed. @throws RdError `ERR_CANCELLED` by the signal. */
export async function changedInTime(
  controllers: Pick<Controllers, 'status' | 'onChange'>,
  is: (status: LoopStatus) => boolean,
  { clock, limitMs, signal }: { clock: Clock; limitMs: number; signal: AbortSignal },
): Promise<boolean> {
  const ended = new AbortController();
  const end = AbortSignal.any([signal, ended.signal]);
  try {
    return await Promise.race([
      changed(controllers, is, end).then(() => true),
      clock.sleep(limitMs, end).then(() => {
        if (signal.aborted) throw cancelled();
        return false;
      }),
    ]);
  } finally {
    ended.abort();
  }
}

function failed(status: LoopStatus, deed: string): RdError {
  return new RdError('ERR_DRIVER_FAILED', `the backend did not ${deed}: ${troubleOf(status)}`);
}

function cancelled(): RdError {
  return new RdError('ERR_CANCELLED', 'the operation was canceled');
}

/** What the status says about a failure. */
export function troubleOf({ conditions }: LoopStatus): string {
  return conditions.find(({ type }) => type === 'Converged')?.message ?? 'the status says why';
}
