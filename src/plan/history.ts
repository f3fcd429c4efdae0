import { defined, isObject, type JsonValue } from '../json.ts';
import { treeOf } from '../settings/blocks.ts';
import { MANAGED_FIELDS } from '../settings/fields.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import { equal } from '../settings/own.ts';
import type { StatedSource } from './apply.gen.ts';
import type { DesiredBackend } from './backend.ts';
import type { Plan } from './change.ts';
import type { Author, HistoryEntry, RecordedChange } from './history.gen.ts';
import { isRuntimeChange } from './runtime-changes.ts';

export type { StatedAuthor, StatedSource } from './apply.gen.ts';
export type { Author, HistoryEntry, RecordedChange, RecordedLoss, RecordedOutcome } from './history.gen.ts';

/** The path of changes of port forwards, and their name in `prune`. */
export const FORWARDS_PATH = 'portForwards';

/** The author of a write, and the place in its sources that asks for each change. */
export interface Origin {
  by: Author;
  sources?: readonly StatedSource[];
}

/** Returns the change of a start or stop that nobody can undo: the start of a desktop whose desired power was on, or its stop with the service. */
export function runChange(after: 'started' | 'stopped'): RecordedChange {
  return { path: 'service', before: after === 'started' ? 'stopped' : 'started', after };
}

/** True for an entry that only records a start or stop of the desktop. */
export function isRunEntry({ changes, loss }: Pick<HistoryEntry, 'changes' | 'loss'>): boolean {
  return changes.length > 0 && changes.every(isRuntimeChange) && loss === undefined;
}

/** Returns the changes of an entry that a rollback can undo. */
export function lastingChanges({ changes }: Pick<HistoryEntry, 'changes'>): RecordedChange[] {
  return changes.filter((change) => !isRuntimeChange(change));
}

/** Returns the changes of port forwards that carry out a plan. */
export function forwardChanges({ changes }: Pick<Plan, 'changes'>): RecordedChange[] {
  return changes.flatMap(({ path, key, before, after, blocked }) =>
    path !== FORWARDS_PATH || key === undefined || blocked ? [] : [{ path, key, ...defined({ before, after }) }],
  );
}

/** Returns the changes with the sources that the caller states. */
export function withSources(
  changes: readonly RecordedChange[],
  sources: readonly StatedSource[] | undefined,
): RecordedChange[] {
  const nameOf = ({ path, key }: Pick<RecordedChange, 'path' | 'key'>) => JSON.stringify([path, key]);
  const stated = new Map(sources?.map((source) => [nameOf(source), source]));
  return changes.map((change) => {
    const { file, line } = stated.get(nameOf(change)) ?? {};
    return file === undefined || line === undefined ? change : { ...change, source: { file, line } };
  });
}

/** Returns the differences between two desired states, in schema order. */
export function recordedChanges(before: DesiredBackend, after: DesiredBackend): RecordedChange[] {
  const [old, next] = [treeOf(before), treeOf(after)];
  const changes = MANAGED_FIELDS.flatMap(({ path, type, sensitive }): RecordedChange[] => {
    const from = leafAt(old, path);
    const to = leafAt(next, path);
    if (path === 'version' || equal(from, to)) return [];
    if (type.startsWith('map')) return entryChanges(path, from, to);
    return [changeOf({ path }, from, to, sensitive)];
  });
  if (before.power !== after.power) changes.push({ path: 'state', before: before.power, after: after.power });
  return changes;
}

function entryChanges(path: string, from: JsonValue | undefined, to: JsonValue | undefined): RecordedChange[] {
  const old = isObject(from) ? from : {};
  const next = isObject(to) ? to : {};
  const keys = new Set([...Object.keys(old), ...Object.keys(next)]);
  return [...keys].flatMap((key) => {
    const before = Object.hasOwn(old, key) ? old[key] : undefined;
    const after = Object.hasOwn(next, key) ? next[key] : undefined;
    return equal(before, after) ? [] : [changeOf({ path, key }, before, after, false)];
  });
}

function changeOf(
  name: { path: string; key?: string },
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  mask: boolean,
): RecordedChange {
  const shown = (value: JsonValue) => (mask && value !== '' ? { sensitive: true as const } : value);
  return {
    ...name,
    ...(before === undefined ? {} : { before: shown(before) }),
    ...(after === undefined ? {} : { after: shown(after) }),
  };
}
