import type { Plan, Target } from '../../../src/plan/change.ts';
import type { HistoryEntry } from '../../../src/plan/history.ts';
import type { FieldManager } from '../../../src/state/field-managers.ts';
import type { Places } from '../../../src/state/places.ts';

/** The history of this home, and the manager of each field. */
interface ManagedHistory {
  entries: readonly HistoryEntry[];
  managers: readonly FieldManager[];
}

const UNKNOWN: ManagedHistory = { entries: [], managers: [] };

/**
 * Returns the managers of a target's fields; none if it is not this home, whose history does not cover it. A history that cannot be read explains
 * nothing, and is no reason to fail.
 */
export async function managedHistory(
  { home }: Pick<Target, 'home'>,
  { data, historyFile }: Pick<Places, 'data' | 'historyFile'>,
): Promise<ManagedHistory> {
  if (home !== data) return UNKNOWN;
  const { readManagedHistory } = await import('../../../src/state/history-file.ts');
  return readManagedHistory(historyFile).catch(() => UNKNOWN);
}

/** Describes the fields that a plan takes over from other managers, as sentences. `profile` is the planned one. */
export async function takeoversOf(
  plan: Pick<Plan, 'changes' | 'target'>,
  profile: { files: readonly string[]; profile?: string },
  where: Pick<Places, 'data' | 'historyFile'>,
): Promise<string[]> {
  if (plan.changes.length === 0) return [];
  const [{ entries, managers }, { takeovers }] = await Promise.all([
    managedHistory(plan.target, where),
    import('../../../src/client/managers.ts'),
  ]);
  return takeovers(plan, managers, entries, profile, Date.now());
}
