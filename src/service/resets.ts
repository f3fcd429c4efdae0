import { RdError } from '../errors.ts';
import { COMPATIBLE } from '../product.ts';
import type { Controllers, Desired } from '../reconcile/contract.ts';
import type { LogFile } from '../storage/log-file.ts';
import { changed, troubleOf } from './backend-wait.ts';
import type { KeptState } from './kept-state.ts';
import type { Maintenance } from './maintenance.ts';

/** `fast`: the data of the cluster goes, images stay. `wipe`: everything that the driver keeps goes. */
export type ResetMode = 'fast' | 'wipe';

export interface ResetsInput {
  maintenance: Pick<Maintenance, 'run' | 'heldBy'>;
  controllers: Pick<Controllers, 'status' | 'onChange'>;
  keptState: Pick<KeptState, 'wipe'>;
  desired(): Desired;
  log: LogFile['write'];
  /** Ends the waiting when the service stops. */
  closing: AbortSignal;
}

const ACTIONS: Readonly<Record<ResetMode, string>> = {
  fast: 'Resetting the cluster',
  wipe: 'Resetting the machine',
};

/**
 * The work of `PUT /v1/k8s_reset`: resolves when the backend is up again, or off where it is to be off. Without a cluster `fast` is a
 * restart.
 * @throws RdError `ERR_NOT_READY` while the backend starts or stops, `ERR_BACKEND_LOCKED`, `ERR_CONVERGE_FAILED` when it does not come up.
 */
export function createResets({ maintenance, controllers, keptState, desired, log, closing }: ResetsInput) {
  return async (mode: ResetMode): Promise<void> => {
    const { backendState } = controllers.status();
    if (backendState === 'STARTING' || backendState === 'STOPPING') {
      throw new RdError('ERR_NOT_READY', `${COMPATIBLE.productName} is busy (${backendState}); nothing was reset`, {
        advice: 'Ask again when it has started or stopped.',
      });
    }
    await maintenance.run(ACTIONS[mode], closing, (work) =>
      mode === 'wipe' ? keptState.wipe(work) : work.resetCluster(),
    );
    log('info', 'reset done', { mode });
    await changed(
      controllers,
      (status) => {
        if (maintenance.heldBy() !== undefined || status.generation !== desired().generation) return false;
        return status.converged || status.backendState === 'ERROR';
      },
      closing,
    );
    const status = controllers.status();
    if (status.backendState !== 'ERROR') return;
    throw new RdError(
      'ERR_CONVERGE_FAILED',
      `the data was reset, and the backend did not come up again: ${troubleOf(status)}`,
    );
  };
}
