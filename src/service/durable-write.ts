import type { Author, RecordedChange } from '../plan/history.ts';
import type { Desired } from '../reconcile/contract.ts';
import type { Recorded } from '../state/desired-store.ts';
import type { ServiceHistory } from './history.ts';
import type { Transactions } from './transactions/contract.ts';

interface Parts {
  history: Pick<ServiceHistory, 'writing' | 'tookEffect' | 'notApplied'>;
  transactions: Pick<Transactions, 'prepare'>;
  /** Stores the state as a whole, or throws and leaves the old one in place. */
  save(next: Desired, before: Desired): Promise<void>;
}

/**
 * Makes a write durable: first its entry in the history and the record of its transaction, then the state. Returns the changes. Throws `ERR_IO`; the
 * old state is then still in place, and the history says so.
 */
export async function writeDurably(
  { history, transactions, save }: Parts,
  { before, next, by, recorded }: { before: Desired; next: Desired; by: Author; recorded: Recorded },
): Promise<RecordedChange[]> {
  const refused = async (error: unknown): Promise<never> => {
    await history.notApplied(next.generation);
    throw error;
  };
  const changes = await history.writing(before, next, by, recorded);
  const write = await transactions.prepare({ before, next, by, onFailure: recorded.onFailure }).catch(refused);
  try {
    await save(next, before);
  } catch (error) {
    await write.undo();
    return refused(error);
  }
  history.tookEffect(next.generation);
  write.commit();
  return changes;
}
