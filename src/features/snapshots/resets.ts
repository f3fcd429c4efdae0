import type { Driver } from '../../drivers/driver.ts';
import { messageOf, RdError } from '../../errors.ts';
import { type Clock, systemClock } from '../../os/clock.ts';
import type { LogFile } from '../../os/log-file.ts';
import { isThere } from '../../os/regular-file.ts';
import { installedVersion } from '../../plan/backend.ts';
import { deletion } from '../../plan/blast-radius.ts';
import type { Author, RecordedLoss } from '../../plan/history.ts';
import { COMPATIBLE } from '../../product.ts';
import { END_LIMIT, failureOf, missingIn, statusMatchesInTime } from '../../reconcile/backend-wait.ts';
import type { Controllers } from '../../reconcile/contract.ts';
import type { Maintenance, MaintenanceWork } from '../../reconcile/maintenance.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import type { SafetySnapshots } from './contract.ts';
import type { KeptState } from './kept-state.ts';

/** `fast` deletes the cluster's data and keeps images; `wipe` deletes everything that the driver keeps. */
export type ResetMode = 'fast' | 'wipe';

export interface ResetRequest {
  by: Author;
  /** `if possible` is for clients of the compatible interface, which cannot ask for a reset without a snapshot. */
  snapshot: 'required' | 'if possible' | 'none';
}

/**
 * Resets the backend. Resolves when it has converged again. Without a cluster, `fast` is a restart.
 * @throws RdError `ERR_NOT_READY` while the backend starts or stops, `ERR_BACKEND_LOCKED`, `ERR_NO_SPACE` and `ERR_SNAPSHOT` without the
 *   required snapshot: nothing was reset then; `ERR_CONVERGE_FAILED` when it does not converge, and `ERR_DEADLINE` when it has not in ten
 *   minutes; the data was reset then.
 */
export type Resets = (mode: ResetMode, request: ResetRequest) => Promise<void>;

interface ResetsInput {
  driver: Pick<Driver, 'keeps' | 'hasCluster'>;
  maintenance: Pick<Maintenance, 'run' | 'heldBy'>;
  controllers: Pick<Controllers, 'status' | 'onChange' | 'observed'>;
  keptState: Pick<KeptState, 'wipe'>;
  safetySnapshots: SafetySnapshots;
  store: Pick<DesiredStore, 'snapshot' | 'write'>;
  /** Records that a reset failed, in the history. */
  failed(generation: number, reason: string): void;
  notice(text: string): void;
  log: LogFile['write'];
  /** Signal that aborts when the service stops. */
  closing: AbortSignal;
  clock?: Clock;
}

const ACTIONS: Readonly<Record<ResetMode, string>> = {
  fast: 'Resetting the cluster',
  wipe: 'Resetting the machine',
};

/** Creates the work of `PUT /v1/k8s_reset`. It is recorded in the history and preceded by a safety snapshot before anything is deleted. */
export function createResets(input: ResetsInput): Resets {
  const {
    driver,
    maintenance,
    controllers,
    keptState,
    safetySnapshots,
    store,
    closing,
    log,
    clock = systemClock,
  } = input;
  const desired = () => store.snapshot().desired;

  /** Returns the data that a reset destroys now, in the words of plans; empty if there is none. */
  async function lossesOf(mode: ResetMode): Promise<string[]> {
    if (mode === 'fast') {
      const installed = driver.hasCluster ? installedVersion(controllers.observed()) : undefined;
      return installed === undefined ? [] : [deletion(installed)];
    }
    const there = await Promise.all(driver.keeps.map(isThere));
    return there.includes(true) ? ['deletes all images, containers and volumes, and the cluster'] : [];
  }

  /** Records a reset, and returns its generation. */
  async function record({ by }: ResetRequest, loss: RecordedLoss): Promise<number> {
    // The reset gets a generation of its own, although the desired state stays the same.
    const { now } = await store.write(() => ({ next: {}, answer: undefined, by, loss }));
    return now.desired.generation;
  }

  async function recordWithSnapshot(
    items: string[],
    request: ResetRequest,
    work: MaintenanceWork,
  ): Promise<number | undefined> {
    if (items.length === 0) return undefined;
    const bare = (uncovered: string) => record(request, { items, uncovered });
    if (request.snapshot === 'none') return bare('it was declined');
    if (safetySnapshots.impossible !== undefined) return bare(safetySnapshots.impossible);
    let isMade = false;
    try {
      return await safetySnapshots.within({ generation: desired().generation + 1, items }, work, (snapshot) => {
        isMade = true;
        return record(request, { items, snapshot });
      });
    } catch (error) {
      if (isMade || request.snapshot === 'required' || work.signal.aborted || !(error instanceof RdError)) throw error;
      input.notice(`Data was reset without a snapshot of it: ${error.message}.`);
      log('warn', 'a reset without a snapshot', { error });
      return bare(error.message);
    }
  }

  return async (mode, request) => {
    const { backendState } = controllers.status();
    if (backendState === 'STARTING' || backendState === 'STOPPING') {
      throw new RdError('ERR_NOT_READY', `${COMPATIBLE.productName} is busy (${backendState}); nothing was reset`, {
        advice: 'Try again when it has started or stopped.',
      });
    }
    // Listed now, because a stopped backend may not report them.
    const items = await lossesOf(mode);
    await maintenance.run(ACTIONS[mode], closing, async (work) => {
      const generation = await recordWithSnapshot(items, request, work);
      try {
        await (mode === 'wipe' ? keptState.wipe(work) : work.resetCluster());
      } catch (error) {
        if (generation !== undefined) input.failed(generation, messageOf(error));
        throw error;
      }
    });
    log('info', 'reset done', { mode });
    const isOver = await statusMatchesInTime(
      controllers,
      (status) => {
        if (maintenance.heldBy() !== undefined || status.generation !== desired().generation) return false;
        return status.converged || status.backendState === 'ERROR';
      },
      { clock, limitMs: END_LIMIT, signal: closing },
    );
    const status = controllers.status();
    if (!isOver) {
      const text = `the data was reset, and the backend is not up again after ${END_LIMIT / 60_000} minutes`;
      throw new RdError('ERR_DEADLINE', `${text} (${missingIn(status)})`, {
        advice: 'The service keeps working on it; check `rdctl status` and the logs.',
      });
    }
    if (status.backendState !== 'ERROR') return;
    throw new RdError(
      'ERR_CONVERGE_FAILED',
      `the data was reset, and the backend did not come up again: ${failureOf(status)}`,
    );
  };
}
