import { RdError } from '../errors.ts';
import { defined } from '../json.ts';
import type { Clock } from '../os/clock.ts';
import type { Condition, LoopStatus } from '../reconcile/contract.ts';
import type { StatusDocument } from '../reconcile/status-document.ts';
import type { EventClient, LifecycleClient } from './contract.ts';
import { isOvertaken } from './overtaken.ts';
import { isUndecided, transactionAt, undoneError } from './transaction-wait.ts';

/** First and longest pause between polls, in milliseconds. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1000;
/** Milliseconds of absence after which a service counts as stopped: a restarting one is away briefly. */
const AWAY_LIMIT = 3000;
/** Milliseconds before the deadline within which a failed request counts as a missed deadline. */
const LAST_MOMENT = 100;

/** A source of statuses. */
export interface StatusFeed<S> {
  /**
   * Returns the next status, not necessarily changed; undefined when none arrived within `leftMs`. `fresh` means that the last one differed from the
   * one before. Throws the errors of requests.
   */
  next(leftMs: number, fresh: boolean): Promise<S | undefined>;
  close(): void;
}

interface FeedInput<S> {
  /** Reads `GET /v2/status`. */
  read(): Promise<S>;
  clock: Clock;
  signal: AbortSignal;
}

/** Polls with growing pauses while nothing changes. */
export function pollStatus<S>({ read, clock, signal }: FeedInput<S>): StatusFeed<S> {
  let pause = 0;
  return {
    async next(leftMs, fresh) {
      pause = fresh ? FIRST_PAUSE : Math.min(pause * 1.5, LONGEST_PAUSE);
      if (pause > 0) await clock.sleep(Math.min(pause, leftMs), signal);
      else pause = FIRST_PAUSE / 1.5;
      return read();
    },
    close: () => undefined,
  };
}

/**
 * Subscribes to changes, and again after a pause when the subscription ends, because the service may be restarting. Polls another application, which
 * has no events.
 */
export function watchStatus(
  client: Pick<LifecycleClient, 'status'> & Pick<EventClient, 'watch'>,
  { clock, signal }: Omit<FeedInput<StatusDocument>, 'read'>,
): StatusFeed<StatusDocument> {
  const { watch } = client;
  if (!watch) return pollStatus({ clock, signal, read: () => client.status({ signal }) });
  const closed = new AbortController();
  const ended = AbortSignal.any([signal, closed.signal]);
  let latest: StatusDocument | undefined;
  let failure: { error: unknown } | undefined;
  let wake = () => {};
  void (async () => {
    for (let pause = FIRST_PAUSE; !ended.aborted; pause = Math.min(pause * 1.5, LONGEST_PAUSE)) {
      const error = await watch((status) => {
        latest = status;
        failure = undefined;
        pause = FIRST_PAUSE;
        wake();
      }, ended).then(
        () => new RdError('ERR_CONNECTION', 'the service is stopping'),
        (thrown: unknown) => thrown,
      );
      failure = { error };
      wake();
      await clock.sleep(pause, ended);
    }
  })();
  return {
    async next(leftMs) {
      if (!latest && !failure && !ended.aborted) {
        const timer = new AbortController();
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await Promise.race([woken, clock.sleep(leftMs, AbortSignal.any([ended, timer.signal]))]);
        timer.abort();
      }
      const status = latest;
      latest = undefined;
      if (status) return status;
      const found = failure;
      failure = undefined;
      if (found) throw found.error;
      return undefined;
    },
    close: () => closed.abort(),
  };
}

/** A status with the steps of an apply, and with the fate of a failed one. */
type Seen = LoopStatus & Pick<StatusDocument, 'apply' | 'transaction' | 'maintenance' | 'kept'>;

export interface WaitInput<S extends Seen> {
  feed: StatusFeed<S>;
  /** The version of the desired state to converge to, or a later one. If absent, the backend is not waited for. */
  generation?: number;
  /** Called once for each later version that another write made; throws unless it leaves the requested state in force. */
  onLater?(): Promise<void>;
  /** Whether to wait until the change is proven, if the service proves it. */
  needsProof?(status: S): boolean;
  /** True once nothing else needs waiting for. */
  isOver?(status: S): boolean;
  timeoutMs: number;
  /** The original limit in milliseconds, for the message, when part of it has passed. */
  askedMs?: number;
  clock: Clock;
  signal: AbortSignal;
  /** Called with every changed status. */
  onStatus?(status: S): void;
}

/**
 * Waits until the service has converged for the generation, and until `isOver`.
 * Throws `ERR_CONVERGE_FAILED` with the failed condition, even for a change that was undone; `ERR_STOPPED` when the service ends first;
 * `ERR_DEADLINE` naming what was missing; `ERR_CANCELLED`; the connection error of a service that exited; or the error of `onLater`.
 */
export async function waitConverged<S extends Seen>(input: WaitInput<S>): Promise<S> {
  const { generation, clock, signal, timeoutMs, askedMs = timeoutMs, isOver = () => true } = input;
  const start = clock.now();
  const leftMs = () => start + timeoutMs - clock.now();
  let seen = '';
  let fresh = false;
  let last: S | undefined;
  let awaySince: number | undefined;
  let known = generation ?? 0;
  for (;;) {
    if (signal.aborted) throw cancelledError();
    try {
      last = (await input.feed.next(leftMs(), fresh)) ?? last;
      if (last && generation !== undefined && last.generation > known && !isStopping(last)) {
        if (isOvertaken(last, generation)) await input.onLater?.();
        known = last.generation;
      }
      awaySince = undefined;
    } catch (error) {
      if (signal.aborted) throw cancelledError();
      awaySince ??= clock.now();
      // The last request only gets the remaining time.
      if (last && isDeadline(error) && leftMs() < LAST_MOMENT) throw deadline(askedMs, last);
      if (!isConnectionError(error)) throw error;
      if (clock.now() - awaySince >= AWAY_LIMIT) throw serviceGoneError(error);
    }
    fresh = false;
    if (last && awaySince === undefined) {
      const now = fingerprint(last);
      fresh = now !== seen;
      seen = now;
      if (fresh) input.onStatus?.(last);
      if (isStopping(last)) throw stoppedError();
      const transaction = transactionAt(last, generation);
      const undone = undoneError(transaction, {
        now: why(last),
        hadSteps: last.apply?.generation === generation,
        kept: last.kept ?? [],
      });
      if (undone) throw undone;
      const isOpen = isUndecided(transaction) && (transaction?.state === 'returning' || input.needsProof?.(last));
      const isThere = generation === undefined || (hasConverged(last, generation) && !isOpen);
      if (isThere && isOver(last)) return last;
      // The transaction may be another caller's apply, which a start waits for.
      if (!isThere && hasFailed(last, generation) && !isUndecided(last.transaction)) {
        throw convergeError(last, transaction?.onFailure === 'return' ? transaction.keptBecause : undefined);
      }
    }
    if (leftMs() <= 0) throw deadline(askedMs, last);
  }
}

/** True when the status covers the generation, or a later one, and reports nothing left to do. */
export function hasConverged(status: LoopStatus, generation: number): boolean {
  return status.converged && status.observedGeneration >= generation;
}

function hasFailed(status: LoopStatus, generation: number): boolean {
  if (status.backendState === 'ERROR') return status.observedGeneration >= generation;
  // Nothing is attempted in this state, so no generation is ever completed.
  return status.conditions.some(({ reason }) => reason === 'DataNotWhole');
}

/**
 * Returns the condition that explains why a status is not converged: failures before work in progress, and parts before the summary. Never returns an
 * intended condition, such as a disabled cluster, or one unrelated to the backend.
 */
export function blockingCondition(status: LoopStatus): Condition | undefined {
  const of = (concern: Condition['concern']) => {
    const open = status.conditions.filter((one) => one.concern === concern && !BESIDE_BACKEND.includes(one.type));
    return open.find((condition) => condition.type !== 'Converged') ?? open[0];
  };
  return of('attention') ?? of('patience');
}

const BESIDE_BACKEND: readonly Condition['type'][] = ['Contested', 'UserFilesReady'];

/** The error of a failed convergence. `keptBecause` is the reason why the service did not undo the change, as a clause. */
function convergeError(status: LoopStatus, keptBecause: string | undefined): RdError {
  const condition = blockingCondition(status);
  const failed = condition
    ? `The backend did not reach the desired state (${condition.type}: ${condition.reason}): ${sentence(condition)}`
    : 'The backend is in state ERROR.';
  return new RdError(
    'ERR_CONVERGE_FAILED',
    keptBecause === undefined ? failed : `${failed} The change is kept, because ${keptBecause}.`,
    // Different settings would not help.
    condition?.reason === 'DataNotWhole'
      ? { advice: 'The settings already sent are kept and apply from then on.' }
      : {},
  );
}

function deadline(timeoutMs: number, last: Seen | undefined): RdError {
  const condition = last && blockingCondition(last);
  const step = last?.apply?.state === 'running' ? last.apply.steps.at(-1) : undefined;
  const missing = condition
    ? ` (${condition.type}: ${condition.reason}): ${sentence(condition)}`
    : step
      ? `: ${step.what} ${step.name} is in progress.`
      : '.';
  const limit = `${timeoutMs / 1000} s`;
  return new RdError('ERR_DEADLINE', `The backend has not converged within ${limit}${missing}`, {
    advice: 'The service keeps working; check `rdctl status`, or apply again with a longer --timeout.',
  });
}

/** Returns the reason why a backend is not as desired, as a sentence. */
function why(status: LoopStatus): string {
  const condition = blockingCondition(status);
  return condition ? sentence(condition) : 'The backend is in state ERROR.';
}

function sentence({ message, reason }: Condition): string {
  const text = message || reason;
  return text.endsWith('.') ? text : `${text}.`;
}

function isStopping({ conditions }: LoopStatus): boolean {
  return conditions.some(({ reason }) => reason === 'ServiceStopping');
}

/** The error for a service that was stopped, as opposed to one that was killed. */
export function stoppedError(cause?: unknown): RdError {
  return new RdError('ERR_STOPPED', 'The service was stopped before the change was in force.', {
    ...defined({ cause }),
    advice:
      'Unless it was reset, what was sent takes effect at the next start. Run the same command again to start the service and finish.',
  });
}

function serviceGoneError(cause: RdError): RdError {
  return new RdError(cause.code, `Lost the connection to the service: ${cause.message}.`, {
    cause,
    advice: 'Changes already sent are kept. Run the same command again to start the service and finish.',
  });
}

function cancelledError(): RdError {
  return new RdError('ERR_CANCELLED', 'Interrupted while waiting for the backend.', {
    advice: 'Changes already sent remain in effect and the service continues; check `rdctl status`.',
  });
}

function isDeadline(error: unknown): boolean {
  return error instanceof RdError && error.code === 'ERR_DEADLINE';
}

function isConnectionError(error: unknown): error is RdError {
  return error instanceof RdError && (error.code === 'ERR_CONNECTION' || error.code === 'ERR_NOT_RUNNING');
}

function fingerprint(status: Seen): string {
  const { generation, backendState, phases, conditions, apply, transaction, maintenance } = status;
  return JSON.stringify([generation, backendState, phases, conditions, apply, transaction, maintenance]);
}
