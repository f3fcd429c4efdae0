import { RdError } from '../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { PlanRequest, Sensitive, WantedForwards } from '../plan/change.ts';
import {
  FORWARDS_PATH,
  type HistoryEntry,
  isRunEntry,
  lastingChanges,
  type RecordedChange,
  type RecordedLoss,
} from '../plan/history.ts';
import { forwardKeyOf, forwardName } from '../plan/port-forwards.ts';
import { partsOf, readBlocks } from '../settings/blocks.ts';
import { fieldAt } from '../settings/fields.ts';
import { leafAt, setLeaf } from '../settings/leaf-paths.ts';
import { equal } from '../settings/own.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';

/** Returns the entries since the last factory reset, which no rollback crosses. */
export function sinceReset(entries: readonly HistoryEntry[]): readonly HistoryEntry[] {
  return entries.slice(entries.findLastIndex(({ by }) => by.how === 'factory reset') + 1);
}

/** The change that a rollback without a generation undoes. */
export interface LastChange {
  /** The generation to go back to. */
  to: number;
  /** The change that is undone, without fields that cannot be; of an apply, its first entry. */
  change: HistoryEntry;
  /** Newer changes that failed and that the service has undone already. */
  rolledBack: HistoryEntry[];
  /** For the undo of a rollback: the failed changes that it undid, which are made again. */
  failedBefore: HistoryEntry[];
}

/**
 * Returns the last change that stands, and the apply that it belongs to. A change that the service rolled back does not stand; a failed change that
 * was kept does; a start or stop alone is no change. Throws `ERR_NOT_FOUND` without one.
 */
export function lastChange(entries: readonly HistoryEntry[]): LastChange {
  const last = lastStanding(entries);
  if (!last) {
    throw new RdError('ERR_NOT_FOUND', 'There is nothing to undo: no change of this home stands.', {
      advice: 'Changes are recorded from the first apply on; see them with `rdctl history`.',
    });
  }
  if (last.changes.length === 0) throw onlyData(last);
  const begun = last.by.continues ?? last.generation;
  const change = entries.find(({ generation }) => generation === begun) ?? last;
  const { how, to = begun } = change.by;
  const undone = how === 'rollback' ? entries.filter((entry) => entry.generation > to && entry.generation < begun) : [];
  return {
    // Numbers have gaps.
    to: entries.findLast((entry) => entry.generation < begun)?.generation ?? begun - 1,
    failedBefore: undone.filter(({ outcome }) => outcome?.result === 'failed' || outcome?.result === 'returned'),
    change: { ...change, changes: lastingChanges(change) },
    rolledBack: entries.filter(({ generation, outcome }) => generation > begun && outcome?.result === 'returned'),
  };
}

/** Returns the last entry that stands. An automatic rollback undoes everything since the generation that it goes back to. */
function lastStanding(entries: readonly HistoryEntry[]): HistoryEntry | undefined {
  const last = entries.findLast(
    (entry) => !['not applied', 'returned'].includes(entry.outcome?.result ?? '') && !isRunEntry(entry),
  );
  if (last?.by.how !== 'return' || last.by.to === undefined) return last;
  const { to } = last.by;
  return lastStanding(entries.filter(({ generation }) => generation <= to));
}

/** The error for a change of data alone: a reset changes no settings, and neither does the restore of a snapshot with the same ones. */
function onlyData({ generation, loss, by }: HistoryEntry): RdError {
  const back =
    loss && 'snapshot' in loss ? `Get the data back with \`rdctl snapshot restore ${loss.snapshot}\`, or undo` : 'Undo';
  const did = by.how === 'restore' ? 'replaced' : 'deleted';
  return new RdError(
    'ERR_NOT_FOUND',
    `The last change, generation ${generation}, ${did} data and changed no settings: a rollback cannot undo it.`,
    { advice: `${back} earlier changes with \`rdctl rollback GENERATION\`.` },
  );
}

/** Returns the entries after a generation that destroyed data, which no rollback brings back. */
export function lossesAfter(entries: readonly HistoryEntry[], to: number): (HistoryEntry & { loss: RecordedLoss })[] {
  return entries.filter(
    (entry): entry is HistoryEntry & { loss: RecordedLoss } =>
      entry.loss !== undefined && entry.generation > to && entry.outcome?.result !== 'not applied',
  );
}

/** The request of a rollback, and the names of secrets that it cannot bring back. */
export interface RollbackRequest {
  request: PlanRequest & { wishes: string[] };
  portForwards: WantedForwards;
  secrets: string[];
}

/**
 * Returns the request that undoes every entry after a generation: for each setting, its value before the first of their changes. Entries that never
 * took effect do not count. `entries` are sorted, oldest first.
 */
export function rollbackRequest(entries: readonly HistoryEntry[], to: number): RollbackRequest {
  const tree: JsonObject = { version: SCHEMA_VERSION };
  const forwards = new Map<string, WantedForwards['entries'][number]>();
  const secrets = new Set<string>();
  let state: PlanRequest['state'] = 'unmanaged';
  const undone = entries.filter(({ generation, outcome }) => generation > to && outcome?.result !== 'not applied');
  for (const { path, key, before } of undone.toReversed().flatMap(lastingChanges)) {
    if (path === 'state') {
      if (before === 'started' || before === 'stopped') state = before;
    } else if (path === FORWARDS_PATH && key !== undefined) {
      const forward = { ...forwardKeyOf(key), hostPort: typeof before === 'number' ? before : null };
      forwards.set(forwardName(forward), forward);
    } else if (isSecret(before)) {
      secrets.add(path);
    } else {
      if (key === undefined) setLeaf(tree, path, before ?? fieldAt(path)?.default ?? null);
      else setEntry(tree, path, key, before ?? null);
    }
  }
  for (const path of secrets) if (leafAt(tree, path) !== undefined) secrets.delete(path);
  const { settings } = partsOf(tree);
  const { blocks } = readBlocks(tree);
  const portForwards = { entries: [...forwards.values()], exclusive: false };
  return { request: { settings, ...blocks, state, prune: [], wishes: [] }, portForwards, secrets: [...secrets] };
}

function setEntry(document: JsonObject, path: string, key: string, value: JsonValue): void {
  const entries = leafAt(document, path);
  setLeaf(document, path, { ...(isObject(entries) ? entries : {}), [key]: value });
}

function isSecret(value: JsonValue | Sensitive | undefined): value is Sensitive {
  return isObject(value) && value.sensitive === true;
}

/** Returns the net changes from the state after generation `a` to that after generation `b`, both recorded; `a` < `b`. */
export function changesBetween(entries: readonly HistoryEntry[], a: number, b: number): RecordedChange[] {
  const net = new Map<string, RecordedChange>();
  const between = entries.filter(
    ({ generation, outcome }) => generation > a && generation <= b && outcome?.result !== 'not applied',
  );
  for (const change of between.flatMap(lastingChanges)) {
    const name = JSON.stringify([change.path, change.key]);
    const first = net.get(name);
    const { before: _, ...rest } = change;
    net.set(name, first ? { ...rest, ...('before' in first ? { before: first.before } : {}) } : change);
  }
  return [...net.values()].filter(
    ({ before, after }) => isSecret(before) || isSecret(after) || !equal(comparable(before), comparable(after)),
  );
}

function comparable(value: JsonValue | Sensitive | undefined): JsonValue | undefined {
  return value === undefined || isSecret(value) ? undefined : value;
}
