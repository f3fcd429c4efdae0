import { messageOf, RdError } from '../../errors.ts';
import type { LogFile } from '../../os/log-file.ts';
import { deletion } from '../../plan/blast-radius.ts';
import { mayDowngrade } from '../../plan/consequences.ts';
import type { HistoryEntry, RecordedLoss } from '../../plan/history.ts';
import { dueLoss } from '../../plan/unplanned-loss.ts';
import type { Controllers, Desired } from '../../reconcile/contract.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import type { SafetySnapshots } from './contract.ts';

/** The part of the history that the guard uses. */
export interface LossHistory {
  entries(): Promise<HistoryEntry[]>;
  lose(generation: number, loss: RecordedLoss): Promise<void>;
}

/** Keeps the loop from deleting data without anyone's consent. */
export interface LossGuard {
  /**
   * Whether the loop may delete the data of the installed cluster now. If not, the loss is recorded and, if possible, a safety snapshot is made
   * first, and the loop asks again. Refuses for good only because of a lock: the change is in force already.
   */
  mayDelete(installed: string): boolean;
  /** Resolves when nothing is in progress. */
  close(): Promise<void>;
}

interface LossGuardInput {
  history: LossHistory;
  safetySnapshots: Pick<SafetySnapshots, 'impossible' | 'whenDue'>;
  store: Pick<DesiredStore, 'snapshot' | 'write'>;
  controllers: Pick<Controllers, 'wake'>;
  /** Shows a notice in the status. */
  notice(text: string): void;
  log: LogFile['write'];
  /** Signal that aborts when the service stops. */
  closing: AbortSignal;
}

export function createLossGuard({
  history,
  safetySnapshots,
  store,
  controllers,
  notice,
  log,
  closing,
}: LossGuardInput): LossGuard {
  /** The data that the loop may delete, and the version of the desired state for which it may. */
  let settled: { generation: number; installed: string } | undefined;
  let settling: Promise<void> | undefined;
  let waits: string | undefined;
  const desired = () => store.snapshot().desired;

  async function settle(installed: string): Promise<void> {
    const { generation } = desired();
    const { cause, isRecorded } = dueLoss(await entriesOf(), installed);
    if (!isRecorded && !(await recordWithSnapshot(cause, installed))) return;
    settled = { generation, installed };
    controllers.wake();
  }

  /** Returns the entries; none if the history cannot be read, as on a broken disk, which must not hold up anything. */
  async function entriesOf(): Promise<HistoryEntry[]> {
    return history.entries().catch((error: unknown) => {
      log('warn', 'the history could not be read', { error });
      return [];
    });
  }

  /** Returns false while something else is in the way, or if the deletion is not due any more. */
  async function recordWithSnapshot(cause: HistoryEntry | undefined, installed: string): Promise<boolean> {
    const items = [deletion(installed)];
    if (safetySnapshots.impossible !== undefined)
      return recordBare(cause, { items, uncovered: safetySnapshots.impossible });
    const generation = cause?.generation ?? desired().generation + 1;
    const loss = { generation, items, settings: withVersion(desired().settings, installed) };
    try {
      await safetySnapshots.whenDue(
        loss,
        async (snapshot) => {
          if (!isDue(desired(), installed)) throw new RdError('ERR_CANCELLED', 'the cluster is not deleted any more');
          await record(cause, { items, snapshot });
          waits = undefined;
          notice(
            `${nameOf(generation, cause)} ${items}; a snapshot was made before, to get it back: rdctl snapshot restore ${snapshot}`,
          );
        },
        closing,
      );
      return true;
    } catch (error) {
      if (closing.aborted || isPassing(error)) {
        noteWait(messageOf(error));
        return false;
      }
      log('warn', 'data is deleted without a snapshot', { error });
      notice(`${nameOf(generation, cause)} ${items}, without a snapshot of it: ${messageOf(error)}.`);
      return recordBare(cause, { items, uncovered: messageOf(error) });
    }
  }

  async function recordBare(cause: HistoryEntry | undefined, loss: RecordedLoss): Promise<true> {
    // A failure, as on a full disk, does not hold up a write that is in force already.
    await record(cause, loss).catch((error: unknown) => log('warn', 'a loss of data is not in the history', { error }));
    return true;
  }

  async function record(cause: HistoryEntry | undefined, loss: RecordedLoss): Promise<void> {
    if (cause && !cause.loss) return history.lose(cause.generation, loss);
    await store.write(() => ({ next: {}, answer: undefined, by: { how: 'service' }, loss }));
  }

  function noteWait(why: string): void {
    if (waits === why || closing.aborted) return;
    waits = why;
    log('info', 'the data of the cluster is not deleted yet', { reason: why });
  }

  return {
    mayDelete(installed) {
      if (settled?.generation === desired().generation && settled.installed === installed) return true;
      if (closing.aborted) return false;
      settling ??= settle(installed)
        .catch((error: unknown) => log('error', 'a loss of data could not be recorded', { error }))
        .finally(() => {
          settling = undefined;
        });
      return false;
    },
    async close() {
      await settling;
    },
  };
}

/** Names the change for later readers, above other plans and in the status. */
function nameOf(generation: number, cause: HistoryEntry | undefined): string {
  return `Generation ${generation} (${cause?.by.how ?? 'service'})`;
}

/** Returns the settings with the version that the data of a snapshot needs: with a lower one, it would be deleted as soon as it is restored. */
function withVersion(settings: Settings, installed: string): Settings {
  return installed === '' ? settings : { ...settings, kubernetes: { ...settings.kubernetes, version: installed } };
}

function isDue({ power, settings: { kubernetes } }: Desired, installed: string): boolean {
  return power === 'started' && kubernetes.enabled && mayDowngrade(installed, kubernetes.version);
}

/** Whether the error may be gone at the next attempt. */
function isPassing(error: unknown): boolean {
  return error instanceof RdError && (error.code === 'ERR_BACKEND_LOCKED' || error.code === 'ERR_CANCELLED');
}
