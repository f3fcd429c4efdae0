import type { Controllers } from './contract.ts';
import type { LoopStatus } from './status.ts';

/**
 * Resolves after the first observation, successful or not, or when the signal aborts. Until then a plan would miss what
 * survived the last service, and promise too much.
 */
export function firstLook(controllers: Pick<Controllers, 'status' | 'onChange'>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (hasLooked(controllers.status()) || signal.aborted) return resolve();
    const finish = () => {
      stop();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const stop = controllers.onChange((status) => {
      if (hasLooked(status)) finish();
    });
    signal.addEventListener('abort', finish, { once: true });
  });
}

function hasLooked({ conditions }: LoopStatus): boolean {
  return conditions.every(({ reason }) => reason !== 'NotObserved');
}
