import type { DriverInfo } from '../../drivers/driver.ts';
import { defined } from '../../json.ts';
import { backendOf, type DesiredBackend } from '../../plan/backend.ts';
import { type Author, recordedChanges } from '../../plan/history.ts';
import { type EarlierState, earlierState, isSame, type OnFailure, partOf, touchedParts } from '../../plan/rollback.ts';
import type { Controllers, Desired } from '../../reconcile/contract.ts';
import type { TransactionReport } from '../../reconcile/status-document.ts';
import type { TransactionRecord } from '../../state/transaction-files.ts';

/** An apply in progress. */
export interface Transaction extends Pick<TransactionRecord, 'after' | 'touched' | 'failedBefore' | 'phases'> {
  report: TransactionReport;
  /** The state that it goes back to; undefined if nothing has ever run. */
  earlier: EarlierState | undefined;
  /** The version of the desired state that the loop works on: that of the apply, of its rollback, or of a restart since. */
  at: number;
  /** Set if its rollback had not been written when the last service ended. */
  isResumedRollback?: true;
  /** Text of the last failed attempt, to recognize a repetition. */
  attempt?: string;
}

/** A write of the desired state. */
export interface Write {
  before: Desired;
  next: Desired;
  by: Author;
  onFailure: OnFailure | undefined;
}

interface BeginInput {
  controllers: Pick<Controllers, 'failure'>;
  driver: DriverInfo;
  /** The power that was requested last. */
  power: DesiredBackend['power'];
  proven: EarlierState | undefined;
}

/** Creates the transaction that a write begins. */
export function transactionOf(
  { before, next }: Write,
  onFailure: OnFailure,
  { controllers, driver, power, proven }: BeginInput,
): Transaction {
  const failure = controllers.failure();
  const failedBefore = failure && partOf(failure.what);
  return {
    at: next.generation,
    report: { generation: next.generation, onFailure, state: 'changing' },
    after: backendOf(next),
    touched: touchedParts(before, next, driver),
    ...(failedBefore ? { failedBefore } : {}),
    earlier: earlierState({
      before: earlierOf(before),
      power,
      proven,
    }),
  };
}

const INSTALLED = 'application.extensions.installed';

/** Whether a write changes nothing but the installed extensions, or nothing at all: it supersedes nothing. */
export function isBookkeeping({ before, next, onFailure }: Write): boolean {
  return onFailure === undefined && recordedChanges(before, next).every(({ path }) => path === INSTALLED);
}

/** Returns the transaction after its rollback was written, or after bookkeeping. */
export function continueTransaction(transaction: Transaction, { next, by }: Write): Transaction {
  const { report, earlier, after } = transaction;
  const wrote = backendOf(next);
  const isRollingBack = report.state === 'returning';
  return {
    ...transaction,
    ...(isRollingBack ? { earlier: earlier && { ...earlier, ...wrote } } : { after: { ...after, ...wrote } }),
    at: next.generation,
    report: by.how === 'return' ? { ...withoutUnwritten(report), returnGeneration: next.generation } : report,
  };
}

function withoutUnwritten({ unwritten: _, ...report }: TransactionReport): TransactionReport {
  return report;
}

/** Resumes the transaction that the last service left, unless the desired state has changed since. */
export function resumeTransaction(left: TransactionRecord, initial: Desired): Transaction | undefined {
  const { generation, phase, reason, after, earlier } = left;
  const isRolledBack = phase === 'returning' && isSame(earlier, initial);
  if (!isRolledBack && !isSame(after, initial)) return undefined;
  return {
    ...left,
    at: initial.generation,
    report: {
      ...{ generation, onFailure: 'return', state: phase },
      ...defined({ reason }),
      ...(phase === 'returning' ? { to: earlier.generation } : {}),
      ...(isRolledBack ? { returnGeneration: initial.generation } : {}),
    },
    ...(phase === 'returning' && !isRolledBack ? { isResumedRollback: true as const } : {}),
  };
}

/** Returns the record with which the next service continues; undefined for a transaction that will not be undone. */
export function recordOf({
  report: { generation, state, reason, onFailure },
  after,
  earlier,
  touched,
  failedBefore,
  phases,
}: Transaction): TransactionRecord | undefined {
  if (!earlier || onFailure === 'keep') return undefined;
  return {
    ...{ generation, phase: state === 'returning' ? 'returning' : 'changing', after, earlier, touched },
    ...(failedBefore ? { failedBefore } : {}),
    ...defined({ reason }),
    ...(phases ? { phases } : {}),
  };
}

export function earlierOf(desired: Desired): EarlierState {
  return { ...backendOf(desired), generation: desired.generation };
}
