import { deletion } from './blast-radius.ts';
import type { HistoryEntry } from './history.ts';

/** Changes that can lead to the deletion of the cluster. */
const CAUSES: readonly string[] = ['kubernetes.version', 'kubernetes.enabled'];

/** The history's view of data that the loop is about to delete. */
export interface DueLoss {
  /** The write that led to it; absent if it is not in the history. */
  cause?: HistoryEntry;
  /** The loss is recorded, with a safety snapshot as far as one could be made. */
  isRecorded: boolean;
}

/**
 * Decides whether the deletion of the installed cluster is already in the history. Pure. A plan and a reset record it before they write; a write
 * without a plan, a start with other settings and a deployment profile do not. `entries`: oldest first.
 */
export function dueLoss(entries: readonly HistoryEntry[], installed: string): DueLoss {
  const cause = entries.findLast(
    ({ by, changes, loss, outcome }) =>
      outcome?.result !== 'not applied' &&
      // A restore replaces the data, whatever was recorded before.
      (loss !== undefined || by.how === 'restore' || changes.some(({ path }) => CAUSES.includes(path))),
  );
  const item = deletion(installed);
  // A plan may append when the loss happens.
  const isRecorded = cause?.loss?.items.some((recorded) => recorded.startsWith(item)) ?? false;
  return { ...(cause ? { cause } : {}), isRecorded };
}
