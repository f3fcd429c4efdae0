import { messageOf, RdError } from '../errors.ts';
import { defined } from '../json.ts';
import { systemClock } from '../os/clock.ts';
import { systemCode } from '../os/io-error.ts';
import type { LogFile } from '../os/log-file.ts';
import {
  type Author,
  FORWARDS_PATH,
  type HistoryEntry,
  isRunEntry,
  type RecordedChange,
  type RecordedLoss,
  type RecordedOutcome,
  recordedChanges,
  runChange,
  withSources,
} from '../plan/history.ts';
import { type Measurement, MOST_MEASUREMENTS, measurementOf } from '../plan/prediction.ts';
import type { Controllers, Desired, LoopStatus } from '../reconcile/contract.ts';
import type { Recorded } from '../state/desired-store.ts';
import { type HistoryFile, openHistory } from '../state/history-file.ts';
import type { Places } from '../state/places.ts';

/** The fate of a failed write: it is undone, or kept for a reason, as a clause. */
export type Aftermath = 'undone' | { keptBecause: string } | undefined;

/** Records desired states and their outcomes. */
export interface ServiceHistory {
  /** The highest recorded generation; 0 without one. */
  readonly last: number;
  /** Changes of port forwards that the last service announced but may not have made, because it was killed. */
  readonly unfinished?: { generation: number; forwards: readonly RecordedChange[] };
  /** Records that everything before was removed by a reset: nothing can be rolled back across it. */
  beginAgain(generation: number): Promise<void>;
  /**
   * Records a write before it takes effect, and returns its changes. `announced` changes are followed by a call of `finished`. `isStart` means that
   * the desktop was off and the service starts it.
   * Throws `ERR_IO` if that fails; the write must not happen then. On a full disk, only a change of power and a reset without a snapshot are let
   * through, because stopping and making room must always be possible; a start that changes nothing else always is.
   */
  writing(
    before: Desired,
    next: Desired,
    by: Author,
    recorded?: Recorded & { isStart?: boolean },
  ): Promise<RecordedChange[]>;
  /**
   * Records that the service stops the desktop as it ends, under a generation that no state has. Returns a function that records the result. Neither
   * rejects; on a full disk nothing is recorded.
   */
  stopping(generation: number, by: Author): (outcome: Outcome) => Promise<void>;
  /** Marks the write of this generation as durable. It supersedes earlier writes that were not reached and are no longer desired. */
  tookEffect(generation: number): void;
  /** Records that a write failed after its entry. */
  notApplied(generation: number): Promise<void>;
  /** Records that the announced steps of a write have ended, with their failure, if any. */
  finished(generation: number, failure?: unknown): void;
  /** Records, in advance, that a write destroys data. Throws `ERR_IO`. */
  lose(generation: number, loss: RecordedLoss): Promise<void>;
  /** Records that a reset failed. */
  failed(generation: number, reason: string): void;
  /**
   * Calls back with the generation of the oldest entry that is left, 0 without any: at once, and each time entries are dropped. Data bound to older
   * entries can be removed.
   */
  onOldest(listener: (generation: number) => void): void;
  /** Returns all entries, oldest first. Throws `ERR_IO`. */
  entries(): Promise<HistoryEntry[]>;
  /** Returns the measured durations of the latest changes, oldest first. */
  measured(): readonly Measurement[];
  /**
   * Records the outcome of each write as the loop reports it. `ofFailure` returns the fate of a failed write; the outcome of a write that is being
   * undone is left to `conclude`.
   */
  follow(controllers: Pick<Controllers, 'onChange'>, ofFailure?: (generation: number) => Aftermath): void;
  /** Records the outcome of a write, whatever the loop reports. Logs a failure. */
  conclude(generation: number, outcome: Outcome): Promise<void>;
  /** Calls back with every outcome from now on, before it is in the file. */
  onOutcome(listener: (generation: number, outcome: Outcome) => void): void;
  /** Continues an entry of an earlier service that has no outcome yet. */
  resume(generation: number): void;
  /**
   * Continues all entries of an earlier service that have no outcome and are still desired, with the power that this service begins with. After an
   * apply that launched the service stopped, they continue with the start that follows. The loop does not continue a write that destroys or restores
   * data.
   */
  continueLeft(power: Desired['power']): void;
  /** Stops recording outcomes that the loop reports. */
  unfollow(): void;
  close(): Promise<void>;
}

type Outcome = Omit<RecordedOutcome, 'at'>;

/** A recorded write without an outcome. */
interface OpenEntry {
  changes: readonly RecordedChange[];
  /** Whether the loop must converge for it; `outcome` follows then. */
  isForLoop: boolean;
  /** Whether the loop reaches it only after the start that follows. */
  waits?: boolean;
  /** Whether it only started the desktop. */
  isRun?: boolean;
  outcome?: Outcome;
  /** Whether its announced steps are not finished. */
  hasSteps: boolean;
  failure?: unknown;
}

interface PendingWrite {
  generation: number;
  changes: readonly RecordedChange[];
  /** Which unreached earlier writes it leaves open: all, those that it does not change again, or none. */
  leaves: 'all' | 'others' | 'nothing';
  /** Whether the desktop is off after it. */
  isOff: boolean;
}

/** Opens the history of a home, in which `state` is stored, if any. `power` is the power that this service was launched with. Throws `ERR_IO`. */
export async function openServiceHistory(
  places: Places,
  state: Pick<Desired, 'generation' | 'power'> | undefined,
  { power: launched, idle = false }: { power: Desired['power'] | 'keep'; idle?: boolean },
  log: LogFile,
): Promise<ServiceHistory> {
  const onDropFailure = (error: unknown) =>
    log.write('warn', 'old changes were not dropped from the history', { error });
  const applied = state?.generation ?? Number.POSITIVE_INFINITY;
  const { initial, ...file } = await openHistory(places.historyFile, applied, systemClock.now, { onDropFailure });
  const last = initial.at(-1);
  const applying = initial.filter(
    (entry) => entry.generation <= applied && entry.outcome?.result !== 'not applied' && !isRunEntry(entry),
  );
  const newest = applying.at(-1);
  return serviceHistory(file, log, {
    idle,
    measured: initial.flatMap((entry) => measurementOf(entry) ?? []),
    // A history without a state outlived a reset, which removed the forwards as well.
    ...(newest && state ? { newest, left: stillDesired(applying) } : {}),
    ...(last && state && last.generation <= applied && isRunEntry(last) ? { start: last } : {}),
    ...(state && launched === 'stopped' ? { launchedFrom: state.power } : {}),
  });
}

/** Returns the entries without an outcome that no later one changed again, oldest first. */
function stillDesired(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const left: HistoryEntry[] = [];
  const later: RecordedChange[] = [];
  for (const entry of entries.toReversed()) {
    if (!entry.outcome && !replaces(later, entry.changes)) left.unshift(entry);
    // Entries before a loss or a restore no longer describe the data.
    if (entry.loss || entry.by.how === 'restore' || entry.by.how === 'factory reset') break;
    later.push(...entry.changes);
  }
  return left;
}

/** Whether later changes override an earlier write: they change the same fields, or turn the desktop off. */
function replaces(later: readonly RecordedChange[], earlier: readonly RecordedChange[]): boolean {
  if (later.some(isPowerOff)) return true;
  return later.some(({ path, key }) => earlier.some((change) => change.path === path && change.key === key));
}

function isPowerOff({ path, after }: RecordedChange): boolean {
  return path === 'state' && after === 'stopped';
}

/** The records of the last service. */
interface Earlier {
  /** Whether this service runs no backend. */
  idle?: boolean;
  /** Entries without an outcome that are still desired, oldest first. */
  left?: readonly HistoryEntry[];
  /** The newest entry that took effect and did more than start or stop the desktop. */
  newest?: HistoryEntry;
  /** The start of the desktop after `newest`, if nothing came later. */
  start?: HistoryEntry;
  /** The power of the last service, if an apply launched this one stopped. */
  launchedFrom?: Desired['power'];
  /** Measured durations of changes, oldest first. */
  measured?: readonly Measurement[];
}

/** Creates the history of a service on an open file. */
export function serviceHistory(
  file: Omit<HistoryFile, 'initial'>,
  log: Pick<LogFile, 'write'>,
  { newest, left = [], start, launchedFrom, idle = false, measured: earlier = [] }: Earlier = {},
): ServiceHistory {
  let powerBefore = launchedFrom;
  let measured = earlier.slice(-MOST_MEASUREMENTS);
  const open = new Map<number, OpenEntry>();
  const unfinished = unfinishedForwards(newest);
  if (unfinished?.alone)
    open.set(unfinished.generation, { changes: unfinished.forwards, isForLoop: false, hasSteps: true });
  let stopFollowing: (() => void) | undefined;
  /** The last write, until it has taken effect. */
  let pending: PendingWrite | undefined;
  let closing: Promise<void> = Promise.resolve();
  let passOn: Parameters<ServiceHistory['onOutcome']>[0] = () => undefined;

  function end(generation: number, outcome: Outcome): Promise<void> {
    open.delete(generation);
    const at = new Date(systemClock.now()).toISOString();
    const measurement = measurementOf({ outcome: { ...outcome, at } });
    if (measurement) measured = [...measured, measurement].slice(-MOST_MEASUREMENTS);
    passOn(generation, outcome);
    closing = file
      .close(generation, { ...outcome, at })
      // Only logged: an outcome is informative, and the write itself is recorded.
      .catch((error: unknown) => log.write('warn', 'the outcome of a change was not recorded', { error }));
    return closing;
  }

  function endIfOver(generation: number, { isForLoop, outcome, hasSteps, failure }: OpenEntry): void {
    if (hasSteps || (isForLoop && !outcome)) return;
    const reached = outcome ?? { result: 'converged' };
    const reason = failure === undefined ? undefined : messageOf(failure);
    const failed = reason !== undefined && ['converged', 'stored'].includes(reached.result);
    end(generation, failed ? { ...reached, result: 'failed', reason } : reached);
  }

  function resume(
    { generation, changes }: Pick<HistoryEntry, 'generation' | 'changes'>,
    rest: Partial<OpenEntry> = {},
  ): void {
    open.set(generation, { changes, isForLoop: true, hasSteps: unfinished?.generation === generation, ...rest });
  }

  /** A desktop that is off has nothing else to converge to. */
  function endIfStored(generation: number, entry: OpenEntry): void {
    if (!entry.isForLoop || entry.outcome || entry.changes.some(isPowerOff)) return;
    entry.outcome = { result: 'stored' };
    endIfOver(generation, entry);
  }

  return {
    last: file.last,
    ...(unfinished ? { unfinished } : {}),
    onOldest: file.onOldest,
    entries: file.entries,
    lose: file.lose,
    measured: () => measured,
    beginAgain: (generation) =>
      file.add({
        generation,
        at: new Date(systemClock.now()).toISOString(),
        by: { how: 'factory reset' },
        changes: [],
      }),
    async writing(before, next, by, { announced, sources, loss, isStart = false } = {}) {
      // The pending write is an earlier one with this number, which failed.
      pending = undefined;
      const power = by.how === 'apply' || by.how === 'rollback' ? powerBefore : undefined;
      const ofBackend = recordedChanges(power === undefined ? before : { ...before, power }, next);
      const starts = isStart || (power === 'started' && before.power === 'stopped' && next.power === 'started');
      const run = starts ? [runChange('started')] : [];
      const changes = withSources([...ofBackend, ...run, ...(announced ?? [])], sources);
      const isOfData = loss !== undefined || by.how === 'restore';
      // A retry after a failure is a new generation without a change.
      if (changes.length === 0 && !isOfData) return changes;
      const isWrite = ofBackend.length > 0 || isOfData;
      // A write that an automatic rollback undoes is concluded separately.
      const isAlone = isWrite && by.continues === undefined && by.how !== 'return';
      const leaves = by.how === 'restore' ? 'nothing' : isAlone ? 'others' : 'all';
      pending = { generation: next.generation, changes, leaves, isOff: idle || next.power === 'stopped' };
      const isRun = isRunEntry({ changes }) && !isOfData;
      const at = new Date(systemClock.now()).toISOString();
      const { generation } = next;
      try {
        await file.add({ generation, at, by, changes, ...(loss ? { loss } : {}) });
      } catch (error) {
        const isFull = error instanceof RdError && ['ENOSPC', 'EDQUOT'].includes(systemCode(error.cause) ?? '');
        const onlyPower = changes.every(({ path }) => path === 'state');
        if (!isRun && (!isFull || !onlyPower || (loss && 'snapshot' in loss))) throw error;
        if (isFull) {
          log.write('warn', 'the disk is full, so a change of power or a reset is not in the history', { generation });
        } else log.write('warn', 'a start is not in the history', { generation, error });
        return changes;
      }
      if (by.how !== 'start' && by.how !== 'policy') powerBefore = undefined;
      open.set(generation, { changes, isForLoop: isWrite || starts, isRun, hasSteps: announced !== undefined });
      return changes;
    },
    stopping(generation, by) {
      const at = new Date(systemClock.now()).toISOString();
      const written = file.add({ generation, at, by, changes: [runChange('stopped')] }).then(
        () => true,
        (error: unknown) => {
          log.write('warn', 'the stop is not in the history', { error });
          return false;
        },
      );
      return async (outcome) => {
        if (!(await written)) return;
        for (const [earlier, { isRun }] of open) if (isRun) await end(earlier, { result: 'superseded' });
        await end(generation, outcome);
      };
    },
    tookEffect(generation) {
      if (pending?.generation !== generation) return;
      const { changes, leaves, isOff } = pending;
      pending = undefined;
      for (const [earlier, entry] of open) {
        if (!isOff) delete entry.waits;
        if (!entry.isForLoop || earlier >= generation || leaves === 'all') continue;
        if (leaves === 'nothing' || replaces(changes, entry.changes)) end(earlier, { result: 'superseded' });
      }
      const own = open.get(generation);
      if (own && isOff) endIfStored(generation, own);
    },
    failed(generation, reason) {
      if (open.has(generation)) end(generation, { result: 'failed', reason });
    },
    async notApplied(generation) {
      if (open.has(generation)) await end(generation, { result: 'not applied' });
    },
    finished(generation, failure) {
      const entry = open.get(generation);
      if (!entry) return;
      Object.assign(entry, { hasSteps: false, failure });
      endIfOver(generation, entry);
    },
    follow(controllers, ofFailure = () => undefined) {
      stopFollowing = controllers.onChange((status) => {
        for (const [generation, entry] of open) {
          if (!entry.isForLoop || entry.outcome || entry.waits || status.generation < generation) continue;
          const outcome = outcomeOf(status, generation);
          const aftermath = ofFailure(generation);
          if (!outcome || aftermath === 'undone') continue;
          entry.outcome = outcome.result === 'failed' ? { ...outcome, ...aftermath } : outcome;
          endIfOver(generation, entry);
        }
      });
    },
    conclude: end,
    onOutcome(listener) {
      passOn = listener;
    },
    resume(generation) {
      // A write with an outcome may still be proven.
      if (open.has(generation) || (newest?.generation === generation && newest.outcome)) return;
      resume(left.find((entry) => entry.generation === generation) ?? { generation, changes: [] });
    },
    continueLeft(power) {
      const waits = idle || (power === 'stopped' && launchedFrom === 'started');
      if (start && !start.outcome) resume(start, { isRun: true, waits });
      for (const entry of left) {
        if (entry.loss || entry.by.how === 'restore' || (unfinished?.alone && entry === newest)) continue;
        resume(entry, { waits });
        const own = open.get(entry.generation);
        if (own && power === 'stopped' && !waits) endIfStored(entry.generation, own);
      }
    },
    unfollow: () => stopFollowing?.(),
    async close() {
      stopFollowing?.();
      await closing;
    },
  };
}

function unfinishedForwards(newest: HistoryEntry | undefined) {
  if (!newest || newest.outcome) return undefined;
  const { generation, changes } = newest;
  const forwards = changes.filter(({ path }) => path === FORWARDS_PATH);
  if (forwards.length === 0) return undefined;
  return { generation, forwards, alone: forwards.length === changes.length };
}

function outcomeOf(status: LoopStatus, generation: number): Outcome | undefined {
  const phases = recordedPhases(status);
  if (status.converged && status.observedGeneration >= generation) return { result: 'converged', phases };
  if (status.backendState !== 'ERROR') return undefined;
  const reason = failureReason(status);
  return { result: 'failed', ...defined({ reason }), phases };
}

/** Returns the reasons of a failed backend, as sentences; undefined if it has not failed. */
export function failureReason({ conditions }: Pick<LoopStatus, 'conditions'>): string | undefined {
  return conditions.find(({ concern }) => concern === 'attention')?.message;
}

/** Returns the steps of a status in the form of the history. */
export function recordedPhases({ phases }: Pick<LoopStatus, 'phases'>): NonNullable<RecordedOutcome['phases']> {
  return phases.map(({ name, ms, outcome }) => ({
    name,
    ...defined({ ms, outcome }),
  }));
}
