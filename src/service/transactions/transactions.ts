import type { DriverInfo } from '../../drivers/driver.ts';
import { messageOf, RdError } from '../../errors.ts';
import { defined, type JsonObject } from '../../json.ts';
import type { Clock } from '../../os/clock.ts';
import type { Log } from '../../os/limited-log.ts';
import type { DesiredBackend } from '../../plan/backend.ts';
import { backendOf } from '../../plan/backend.ts';
import {
  decideRollback,
  type EarlierState,
  isSame,
  type RollbackDecision,
  rollbackObstacle,
  type TerminalFailure,
} from '../../plan/rollback.ts';
import type { Controllers, Desired, LoopStatus } from '../../reconcile/contract.ts';
import { MANY_ENDS } from '../../reconcile/ends.ts';
import type { TransactionReport } from '../../reconcile/status-document.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import type { TransactionFiles, TransactionRecord } from '../../state/transaction-files.ts';
import { failureReason, recordedPhases, type ServiceHistory } from '../history.ts';
import type { Transactions } from './contract.ts';
import { createProving, isRunning } from './proving.ts';
import { transactionRecords } from './records.ts';
import {
  continueTransaction,
  earlierOf,
  isBookkeeping,
  resumeTransaction,
  type Transaction,
  transactionOf,
  type Write,
} from './transaction.ts';

export interface TransactionsInput {
  files: TransactionFiles;
  /** Proven state that was read from `files` at startup. */
  proven: EarlierState | undefined;
  left: TransactionRecord | undefined;
  initial: Desired;
  /** The power before this service; a launch for an apply begins without it. */
  power: DesiredBackend['power'];
  controllers: Pick<Controllers, 'status' | 'failure' | 'observed' | 'onChange'>;
  history: Pick<ServiceHistory, 'conclude' | 'resume'>;
  desired(): Desired;
  write: DesiredStore['write'];
  locks: JsonObject;
  driver: DriverInfo;
  /** Whether the backend is kept off, whatever is desired. */
  isHeld(): boolean;
  isRestoreUnproven(): boolean;
  /** Whether this service runs no backend. */
  idle: boolean;
  clock: Clock;
  log: Log;
}

/** Milliseconds after which a second attempt has had every chance. */
const LONG_MS = 60_000;
/** Milliseconds that a proven change is watched for a part that keeps ending. */
const WATCH_MS = 60_000;
/** Milliseconds between attempts to write a rollback: first and longest pause. */
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;

export function createTransactions(input: TransactionsInput): Transactions {
  const { controllers, history, driver, locks, log } = input;
  const listeners = new Set<() => void>();
  const records = transactionRecords(input.files, log);
  let proven = input.proven;
  let current: Transaction | undefined;
  let report: TransactionReport | undefined;
  /** True while a write, and with it its record, is in progress. */
  let isPending = false;
  let isClosed = false;
  const proving = createProving(input.clock, (generation) => void prove(generation), driver.provingMs);
  const closing = new AbortController();

  function show(transaction: Transaction, change: Partial<TransactionReport> = {}): void {
    transaction.report = { ...transaction.report, ...change };
    report = transaction.report;
    for (const listen of [...listeners]) listen();
  }

  function end(transaction: Transaction, change: Partial<TransactionReport>): void {
    current = undefined;
    show(transaction, change);
    removeRecord();
  }

  function removeRecord(): void {
    records.remove(() => !current && !isPending);
  }

  async function prove(generation: number): Promise<void> {
    const desired = input.desired();
    if (desired.generation !== generation || isClosed) return;
    const state = earlierOf(desired);
    const isNew = !proven || !isSame(proven, state);
    proven = state;
    if (isNew) await records.saveProven(state);
    if (current?.at !== generation || current.report.state !== 'proving') return;
    const transaction = current;
    show(transaction, { state: 'done' });
    // It may still turn out that a part keeps ending.
    await input.clock.sleep(WATCH_MS, closing.signal);
    if (!isClosed) forget(transaction);
  }

  /** Discards the way back of a transaction that is done. */
  function forget(transaction: Transaction): void {
    if (current !== transaction || transaction.report.state !== 'done') return;
    current = undefined;
    removeRecord();
  }

  function look(status: LoopStatus): void {
    if (isClosed) return;
    proving.look(status);
    const transaction = current;
    if (!transaction || input.isHeld() || status.generation !== transaction.at) return;
    const hasFailed = status.backendState === 'ERROR';
    const hasConverged = status.converged && status.observedGeneration === status.generation;
    const { state, returnGeneration } = transaction.report;
    if (state === 'returning') {
      if (transaction.isResumedRollback) resumeRollback(transaction, status);
      else if (returnGeneration === undefined) return;
      else if (hasFailed) end(transaction, { state: 'failed' });
      else if (hasConverged) end(transaction, { state: 'returned' });
    } else if (hasFailed) decide(transaction, status);
    else if (state !== 'done' && hasConverged !== (state === 'proving'))
      show(transaction, { state: hasConverged ? 'proving' : 'changing' });
  }

  function decisionOn(
    { report: { onFailure }, after: failed, touched, earlier, failedBefore }: Transaction,
    failure: TerminalFailure,
  ): RollbackDecision {
    return decideRollback({
      ...{ onFailure, failed, touched, earlier, failure, failedBefore, locks, driver },
      isRestoreUnproven: input.isRestoreUnproven(),
      observed: controllers.observed(),
    });
  }

  function decide(transaction: Transaction, status: LoopStatus): void {
    const failure = controllers.failure();
    if (!failure) return;
    const { generation, state } = transaction.report;
    const reason = failureReason(status) ?? failure.error.message;
    const decision = decisionOn(transaction, failure);
    // A backend that ran for a while may fail for other reasons.
    if (state === 'done' && ('keptBecause' in decision || !keepsEnding(failure))) {
      forget(transaction);
      return;
    }
    if ('keptBecause' in decision) {
      log('info', 'a change failed and is kept', { generation, because: decision.keptBecause });
      end(transaction, { state: 'kept', reason, ...decision });
      return;
    }
    transaction.earlier = decision.to;
    transaction.phases = recordedPhases(status);
    const to = decision.to.generation;
    log('info', 'a change failed and is undone', { generation, to, reason });
    show(transaction, { state: 'returning', reason, to });
    void rollBack(transaction, decision.to);
  }

  /** Resumes a rollback once the backend has been observed. A reason against it may have come up since it was decided. */
  function resumeRollback(transaction: Transaction, { conditions }: LoopStatus): void {
    const { earlier, after: failed } = transaction;
    if (!earlier || conditions.some(({ reason }) => reason === 'NotObserved')) return;
    delete transaction.isResumedRollback;
    const [isRestoreUnproven, observed] = [input.isRestoreUnproven(), controllers.observed()];
    const obstacle = rollbackObstacle(earlier, { failed, locks, driver, isRestoreUnproven, observed });
    if (obstacle === undefined) void rollBack(transaction, earlier);
    else keep(transaction, obstacle);
  }

  async function rollBack(transaction: Transaction, to: EarlierState): Promise<void> {
    const mayWrite = () => current === transaction && !isClosed;
    await records
      .save(transaction, () => mayWrite() && !isPending)
      // Without the record, the next service would see the change fail once more, and roll it back as well.
      .catch((error: unknown) => log('warn', 'a return was not recorded', { error }));
    for (let pause = FIRST_RETRY_MS; mayWrite(); pause = Math.min(2 * pause, LONGEST_RETRY_MS)) {
      try {
        await input.write(({ desired }) => {
          if (!mayWrite() || desired.generation !== transaction.at) return { answer: undefined };
          return { next: backendOf(to), by: { how: 'return', to: to.generation }, answer: undefined };
        });
        break;
      } catch (error) {
        const isStopping = error instanceof RdError && error.code === 'ERR_NOT_READY';
        if (!mayWrite() || isStopping) break;
        // A full disk stays full for a while.
        log('warn', 'a return could not be written, and is tried again', { error });
        if (transaction.report.unwritten === undefined) show(transaction, { unwritten: messageOf(error) });
        await input.clock.sleep(pause, closing.signal);
      }
    }
    if (transaction.report.returnGeneration !== undefined) await conclude(transaction, { result: 'returned' });
  }

  function keep(transaction: Transaction, keptBecause: string): void {
    end(transaction, { state: 'kept', keptBecause });
    void conclude(transaction, { result: 'failed', keptBecause });
  }

  function conclude(
    { report: { generation, reason }, phases }: Transaction,
    outcome: { result: 'returned' } | { result: 'failed'; keptBecause: string },
  ): Promise<void> {
    return history.conclude(generation, {
      ...outcome,
      ...defined({ reason }),
      ...(phases ? { phases } : {}),
    });
  }

  function resume(left: TransactionRecord): void {
    const transaction = resumeTransaction(left, input.initial);
    if (!transaction) {
      removeRecord();
      return;
    }
    const { generation, state, returnGeneration } = transaction.report;
    log('info', 'a transaction of the last service continues', { generation, state });
    if (returnGeneration === undefined) history.resume(generation);
    else void conclude(transaction, { result: 'returned' });
    current = transaction;
    show(transaction);
  }

  /** Returns the transaction in progress after a write. */
  function afterWrite(write: Write): { transaction: Transaction | undefined; continues: boolean } {
    const { next, before, by, onFailure } = write;
    if (current && (by.how === 'return' || isBookkeeping(write))) {
      return { transaction: continueTransaction(current, write), continues: true };
    }
    if (!onFailure || next.power === 'stopped' || input.idle) return { transaction: undefined, continues: false };
    const power = before.generation === input.initial.generation ? input.power : before.power;
    const transaction = transactionOf(write, onFailure, { controllers, driver, power, proven });
    return { transaction, continues: false };
  }

  const unsubscribe = controllers.onChange(look);
  if (input.left) resume(input.left);

  return {
    async prepare(write) {
      // A state that runs as desired until it is changed is proven as well.
      const status = controllers.status();
      if (isRunning(status) && status.generation === write.before.generation) proven = earlierOf(write.before);
      const { transaction, continues } = afterWrite(write);
      // The write of a rollback is in its record already.
      const mustSave = transaction !== undefined && write.by.how !== 'return';
      isPending = true;
      try {
        if (mustSave) await records.save(transaction);
      } catch (error) {
        isPending = false;
        throw error;
      }
      const replaced = current;
      return {
        commit() {
          isPending = false;
          if (continues) {
            if (replaced && replaced === current) show(Object.assign(replaced, transaction));
            return;
          }
          if (current && current.report.state !== 'done') show(current, { state: 'superseded' });
          current = transaction;
          if (transaction) show(transaction);
          else if (replaced) removeRecord();
        },
        async undo() {
          isPending = false;
          if (!mustSave) return;
          await records.save(current).catch((error: unknown) => log('warn', 'a transaction has no record', { error }));
          if (!current) removeRecord();
        },
      };
    },
    aftermath(generation) {
      if (report?.generation !== generation) return undefined;
      const { state, onFailure, keptBecause } = report;
      if (state === 'returning') return 'undone';
      return state === 'kept' && onFailure === 'return' && keptBecause !== undefined ? { keptBecause } : undefined;
    },
    givesUp({ what, error, attempts }, ms) {
      const transaction = current;
      if (!transaction || transaction.report.state === 'returning' || input.isHeld()) return false;
      if (controllers.status().generation !== transaction.at) return false;
      if (keepsEnding({ what })) {
        if (attempts < MANY_ENDS) return false;
        return transaction.report.state !== 'done' || 'to' in decisionOn(transaction, { what, error });
      }
      if (transaction.report.state === 'done') return false;
      // Log lines have times and process numbers.
      const attempt = `${what}: ${error.message.replace(/\d+/g, '#')}`;
      const isSameAgain = transaction.attempt === attempt || ms >= LONG_MS;
      transaction.attempt = attempt;
      // A step that fails once may work the second time.
      return attempts > 1 && isSameAgain && 'to' in decisionOn(transaction, { what, error });
    },
    oldestRollback: () => Math.min(current?.earlier?.generation ?? Infinity, proven?.generation ?? Infinity),
    report: () => report,
    wasRolledBack(generation, signal) {
      return new Promise((resolve) => {
        const answer = () => {
          const state = report?.generation === generation ? report.state : 'superseded';
          if (state === 'changing' && !signal.aborted) return;
          listeners.delete(answer);
          signal.removeEventListener('abort', answer);
          resolve(state === 'returning' || state === 'returned' || state === 'failed');
        };
        listeners.add(answer);
        signal.addEventListener('abort', answer, { once: true });
        answer();
      });
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      isClosed = true;
      closing.abort();
      unsubscribe();
      proving.close();
      await records.idle();
    },
  };
}

/** Whether a part ran, and ended by itself again and again. */
function keepsEnding({ what }: Pick<TerminalFailure, 'what'>): boolean {
  return what.endsWith(' run');
}
