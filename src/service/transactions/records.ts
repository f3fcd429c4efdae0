import type { Log } from '../../os/limited-log.ts';
import { SerialQueue } from '../../os/serial-queue.ts';
import type { EarlierState } from '../../plan/rollback.ts';
import type { TransactionFiles } from '../../state/transaction-files.ts';
import { recordOf, type Transaction } from './transaction.ts';

/** Keeps the files of transactions, one operation after the other. */
export interface Records {
  /** Saves a transaction; saves nothing for one that will not be undone. `mayStill` is checked when its turn comes. Throws `ERR_IO`. */
  save(transaction: Transaction | undefined, mayStill?: () => boolean): Promise<void>;
  /** Removes the record. One that stays has no effect once the desired state is another one. */
  remove(mayStill: () => boolean): void;
  /** Saves the proven state. Without the file, only the next service does not know it. */
  saveProven(state: EarlierState): Promise<void>;
  /** Resolves when all operations are done. */
  idle(): Promise<void>;
}

export function transactionRecords(files: TransactionFiles, log: Log): Records {
  const queue = new SerialQueue();
  return {
    async save(transaction, mayStill = () => true) {
      const record = transaction && recordOf(transaction);
      if (!record) return;
      await queue.run(async () => {
        if (mayStill()) await files.saveTransaction(record);
      });
    },
    remove(mayStill) {
      queue
        .run(async () => {
          if (mayStill()) await files.removeTransaction();
        })
        .catch((error: unknown) => log('warn', 'the record of a transaction stays', { error }));
    },
    async saveProven(state) {
      await queue
        .run(() => files.saveProven(state))
        .catch((error: unknown) => log('warn', 'the proven state was not saved', { error }));
    },
    idle: () => queue.idle(),
  };
}
