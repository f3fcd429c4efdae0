import { RdError } from '../errors.ts';
import { systemClock } from '../os/clock.ts';
import { systemCode } from '../os/io-error.ts';
import type { LogFile } from '../os/log-file.ts';
import { type Author, type RecordedOutcome, recordedChanges } from '../plan/history.ts';
import type { Controllers, Desired, LoopStatus } from '../reconcile/contract.ts';
import { type HistoryFile, openHistory } from '../state/history-file.ts';
import type { Places } from '../state/places.ts';

/** Records what is desired, and what became of it. */
export interface ServiceHistory {
  /** The highest recorded generation; 0 without one. */
  readonly last: number;
  /** Records that everything before was removed by a reset: nothing can be rolled back across it. */
  beginAgain(generation: number): Promise<void>;
  /**
   * Records a write before it takes effect. Throws `ERR_IO` when that is not possible: the write must not happen then. On a full disk only
   * a change of power is let through, because stopping must always be possible.
   */
  writing(before: Desired, next: Desired, by: Author): Promise<void>;
  /** As `HistoryFile.onOldest`: what is bound to an older entry can go. */
  onOldest(listener: (generation: number) => void): void;
  /** Records the outcome of each write as the loop reports it. */
  follow(controllers: Pick<Controllers, 'onChange'>): void;
  close(): Promise<void>;
}

/** Opens the history of a home. Throws `ERR_IO`. @param current the stored generation. */
export async function openServiceHistory(places: Places, current: number, log: LogFile): Promise<ServiceHistory> {
  const onDropFailure = (error: unknown) =>
    log.write('warn', 'old changes were not dropped from the history', { error });
  return serviceHistory(await openHistory(places.historyFile, current, systemClock.now, { onDropFailure }), log);
}

/** Records in a history that is open. */
export function serviceHistory(file: HistoryFile, log: Pick<LogFile, 'write'>): ServiceHistory {
  /** The last recorded write without an outcome. */
  let open: number | undefined;
  let stopFollowing: (() => void) | undefined;
  let closing: Promise<void> = Promise.resolve();

  function end(generation: number, outcome: Omit<RecordedOutcome, 'at'>): void {
    open = undefined;
    closing = file
      .close(generation, { ...outcome, at: new Date(systemClock.now()).toISOString() })
      // An outcome informs; the write itself is recorded.
      .catch((error: unknown) => log.write('warn', 'the outcome of a change was not recorded', { error }));
  }

  return {
    last: file.last,
    onOldest: file.onOldest,
    beginAgain: (generation) =>
      file.add({ generation, at: new Date(systemClock.now()).toISOString(), by: { how: 'reset' }, changes: [] }),
    async writing(before, next, by) {
      const changes = recordedChanges(before, next);
      // A retry after a failure is a new generation without a change.
      if (changes.length === 0) return;
      const at = new Date(systemClock.now()).toISOString();
      const { generation } = next;
      try {
        await file.add({ generation, at, by, changes });
      } catch (error) {
        const isFull = error instanceof RdError && ['ENOSPC', 'EDQUOT'].includes(systemCode(error.cause) ?? '');
        const onlyPower = changes.every(({ path }) => path === 'state');
        if (!isFull || !onlyPower) throw error;
        log.write('warn', 'the disk is full, so a change of power is not in the history', { generation });
        return;
      }
      // A write that failed after its entry has the same number.
      if (open !== undefined && open < generation) end(open, { result: 'superseded' });
      open = generation;
    },
    follow(controllers) {
      stopFollowing = controllers.onChange((status) => {
        const outcome = open === undefined || status.generation < open ? undefined : outcomeOf(status, open);
        if (open !== undefined && outcome) end(open, outcome);
      });
    },
    async close() {
      stopFollowing?.();
      await closing;
    },
  };
}

function outcomeOf(status: LoopStatus, generation: number): Omit<RecordedOutcome, 'at'> | undefined {
  const phases = status.phases.map(({ name, ms, outcome }) => ({
    name,
    ...(ms === undefined ? {} : { ms }),
    ...(outcome === undefined ? {} : { outcome }),
  }));
  if (status.converged && status.observedGeneration >= generation) return { result: 'converged', phases };
  if (status.backendState !== 'ERROR') return undefined;
  const failed = status.conditions.find(({ concern }) => concern === 'attention');
  return { result: 'failed', ...(failed ? { reason: failed.message } : {}), phases };
}
