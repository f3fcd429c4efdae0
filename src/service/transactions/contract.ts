import type { Failure } from '../../reconcile/attempts.ts';
import type { TransactionReport } from '../../reconcile/status-document.ts';
import type { Aftermath } from '../history.ts';
import type { Write } from './transaction.ts';

/**
 * Undoes applies whose change fails, whether or not their tools still live.
 *
 * ```
 * changing ⇄ proving ─▶ done                   it converged and ran for a moment
 *     └─────────┴─────▶ returning ─▶ returned  the change failed; the earlier state runs
 *               └─────▶ kept  └────▶ failed    for a reason; the earlier state failed as well
 * ```
 *
 * Any other write supersedes it. A record on the disk lets the next service continue.
 */
export interface Transactions {
  /**
   * Called for every write, after its entry in the history and before it takes effect.
   * @throws RdError `ERR_IO` when the transaction cannot be recorded: the write must not happen then.
   */
  prepare(write: Write): Promise<PreparedWrite>;
  /** Returns the fate of a failed write, for the history. */
  aftermath(generation: number): Aftermath;
  /** Whether the loop should not retry a step, because the change is refused. `ms` is the duration of the attempt. */
  givesUp(failure: Failure, ms: number): boolean;
  /** Returns the oldest version that a failed change may go back to; Infinity if there is none. */
  oldestRollback(): number;
  /** Returns the report of the last transaction. */
  report(): TransactionReport | undefined;
  /** Resolves to true if an apply was undone, once that is certain or the signal aborts; to false for any other write. */
  wasRolledBack(generation: number, signal: AbortSignal): Promise<boolean>;
  /** Registers a listener. Returns the unsubscribe function. */
  onChange(listener: () => void): () => void;
  /** Closes the records. A transaction in progress is left to the next service. */
  close(): Promise<void>;
}

/** A prepared write. Exactly one method is called: once the write has taken effect, or has not. */
interface PreparedWrite {
  commit(): void;
  undo(): Promise<void>;
}
