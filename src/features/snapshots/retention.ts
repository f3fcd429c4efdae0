import { type HistoryEntry, isRunEntry } from '../../plan/history.ts';
import type { Snapshot } from './catalogue.ts';

const HOUR = 3_600_000;
/** Days that the oldest snapshot stays at least. */
const LEAST_DAYS = 7;
/** Newest rows of which the first snapshot is kept. */
const ROWS = 3;

type SafetySnapshotFacts = Pick<Snapshot, 'created' | 'covers'>;

export interface RetentionInput<C extends SafetySnapshotFacts> {
  /** The snapshots made before data was destroyed, oldest first. */
  snapshots: readonly C[];
  /** The history, oldest first. */
  entries: readonly HistoryEntry[];
  /** Time at which this installation first ran. Older snapshots outlived a factory reset, and their generations mean something else. */
  since?: string;
  now: number;
}

/**
 * Returns the safety snapshots that can be deleted, each with the reason as a clause.
 *
 * Attempts in quick succession are a row: each destroys only data that came after the one before, so the first snapshot has everything that mattered.
 * A new row begins an hour after a change succeeded. Kept are the first of each of the newest rows, the newest of all, and the oldest of all until it
 * is a week old and a later change has succeeded. Snapshots whose change the history has dropped go under the same two conditions.
 */
export function obsoleteSafetySnapshots<C extends SafetySnapshotFacts>(
  input: RetentionInput<C>,
): { snapshot: C; why: string }[] {
  const { snapshots, entries, now } = input;
  const proven = entries.flatMap((entry) => {
    const { by, outcome } = entry;
    const isProof = outcome?.result === 'converged' && by.how !== 'return' && !isRunEntry(entry);
    return isProof ? [Date.parse(outcome.at)] : [];
  });
  const rows = rowsOf(input, proven);
  const begins = rows.map(([begin]) => begin);
  const kept = new Set([...begins.slice(-ROWS), snapshots.at(-1)]);
  return snapshots.flatMap((snapshot, index) => {
    const created = Date.parse(snapshot.created);
    const isSettled = now - created >= LEAST_DAYS * 24 * HOUR && proven.some((at) => at >= created);
    if (isSettled && standing(snapshot, input) === 'dropped') {
      return [{ snapshot, why: 'the history no longer has its change' }];
    }
    if (kept.has(snapshot) || (index === 0 && !isSettled)) return [];
    const why = begins.includes(snapshot)
      ? `only those of the last ${ROWS} are kept`
      : 'others were made right before and after it';
    return [{ snapshot, why }];
  });
}

/** Groups the snapshots in rows. If the history does not reach back to it, each is a row of its own. */
function rowsOf<C extends SafetySnapshotFacts>(input: RetentionInput<C>, proven: readonly number[]): C[][] {
  const rows: C[][] = [];
  let last: C | undefined;
  for (const snapshot of input.snapshots) {
    const [begun, made] = [Date.parse(last?.created ?? ''), Date.parse(snapshot.created)];
    const hasLived = proven.some((at) => at >= begun && made - at >= HOUR);
    const row = rows.at(-1);
    if (row && last && standing(last, input) === 'there' && !hasLived) row.push(snapshot);
    else rows.push([snapshot]);
    last = snapshot;
  }
  return rows;
}

/** Returns whether the history has the change of a snapshot. */
function standing(
  { covers, created }: SafetySnapshotFacts,
  { entries: [first], since }: Pick<RetentionInput<SafetySnapshotFacts>, 'entries' | 'since'>,
): 'there' | 'dropped' | 'unknown' {
  const isOurs = since === undefined || Date.parse(created) >= Date.parse(since);
  if (!first || covers === undefined || !isOurs) return 'unknown';
  return covers < first.generation ? 'dropped' : 'there';
}
