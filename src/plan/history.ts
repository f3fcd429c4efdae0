import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import { MACHINE_FIELDS } from '../settings/machine-options.gen.ts';
import { equal } from '../settings/own.ts';
import type { DesiredBackend } from './backend.ts';
import type { Plan, Sensitive } from './change.ts';
import type { Consent } from './losses.ts';
import { isRuntimeChange } from './runtime-changes.ts';

/** The path of changes of port forwards, and their name in `prune`. */
export const FORWARDS_PATH = 'portForwards';

/** A setting, map entry, power state or port forward that a write changed; secrets are masked. */
export interface RecordedChange {
  /** As in plans: a dotted setting path, a path of the `machine` block, `state`, `portForwards`, or `service` (see `runChange`). */
  path: string;
  /** Key of the entry where the setting is a map; the name of a port forward. */
  key?: string;
  /** Absent where there was none. */
  before?: JsonValue | Sensitive;
  /** Absent where there is none. */
  after?: JsonValue | Sensitive;
  /** Where the profile asks for it, as the caller states: a file as in the author's `files`, and a line from 1. */
  source?: { file: string; line: number };
}

/** What the client of an apply says about it. */
export interface StatedAuthor extends Pick<Author, 'profile' | 'files' | 'to' | 'consent'> {
  /** Where its files ask for the changes of the plan. */
  sources?: StatedSource[];
}

/** Where a profile asks for a change; see `RecordedChange`. */
export interface StatedSource extends Pick<RecordedChange, 'path' | 'key'> {
  file: string;
  line: number;
}

/** What made a write, as far as the service knows or was told. */
export interface Author {
  how:
    | 'start'
    | 'policy'
    /** Something else changed the settings file while no service ran. */
    | 'edit'
    | 'apply'
    | 'rollback'
    | 'return'
    | 'heal'
    | 'set'
    | 'api'
    | 'power'
    | 'restore'
    | 'reset'
    | 'factory reset'
    | 'service';
  /** The name of the token that the client used. */
  token?: string;
  /** The program, as its `User-Agent` states. */
  program?: string;
  /** `metadata.name` of the profile. */
  profile?: string;
  /** Files of the profile, absolute or `-`, each with the SHA-256 of its content. */
  files?: { path: string; sha256: string }[];
  /** The generation that a rollback or a return goes back to. */
  to?: number;
  /** The snapshot that was restored; a restore without one puts the replaced data back. */
  snapshot?: string;
  /** Where it destroys data: to what the caller says that a person has consented. */
  consent?: Consent;
  /** The generation of the apply that this write finishes: an extension that it installed or removed. */
  continues?: number;
}

/** What makes a write, and where it asks for each change. */
export interface Origin {
  by: Author;
  sources?: readonly StatedSource[];
}

/** Data that a write or a reset destroys, and the snapshot made before, or why there is none. */
export type RecordedLoss = {
  /** Clauses: `deletes the workloads and data of the cluster (version 1.30.2)`. */
  items: string[];
} & ({ snapshot: string } | { uncovered: string });

/** What became of a write. */
export interface RecordedOutcome {
  /**
   * `stored`: the desktop is off, and has it from the next start on. `returned`: it failed, and the service went back to an earlier state.
   * `superseded`: a later write changed the same before it was reached, or stopped the desktop. `not applied`: the service ended before the
   * write took effect.
   */
  result: 'converged' | 'stored' | 'failed' | 'returned' | 'superseded' | 'not applied';
  /** RFC 3339. */
  at: string;
  /** Why it failed. */
  reason?: string;
  /** Why a failed apply was not undone, as a clause. */
  keptBecause?: string;
  /** Steps on the way, with whole milliseconds. */
  phases?: { name: string; ms?: number; outcome?: 'done' | 'failed' }[];
}

/** One write of the desired state, a reset, or a start or stop of the desktop without one. */
export interface HistoryEntry {
  /** Version of the desired state since this write. Starts of the service count as well, so numbers have gaps. */
  generation: number;
  /** RFC 3339. */
  at: string;
  by: Author;
  changes: RecordedChange[];
  /** Where data is destroyed. */
  loss?: RecordedLoss;
  /** Absent while the backend converges, and after a service that was killed meanwhile. */
  outcome?: RecordedOutcome;
}

/** The start of a desktop that its desired power left on, or the stop of one by the end of its service: nothing that could be undone. */
export function runChange(after: 'started' | 'stopped'): RecordedChange {
  return { path: 'service', before: after === 'started' ? 'stopped' : 'started', after };
}

/** True for an entry that only says who started or stopped the desktop. */
export function isRunEntry({ changes, loss }: Pick<HistoryEntry, 'changes' | 'loss'>): boolean {
  return changes.length > 0 && changes.every(isRuntimeChange) && loss === undefined;
}

/** The changes of an entry that a rollback can undo. */
export function lastingChanges({ changes }: Pick<HistoryEntry, 'changes'>): RecordedChange[] {
  return changes.filter((change) => !isRuntimeChange(change));
}

/** The changes of port forwards that carry out a plan. */
export function recordedForwards({ changes }: Pick<Plan, 'changes'>): RecordedChange[] {
  return changes.flatMap(({ path, key, before, after, blocked }) =>
    path !== FORWARDS_PATH || key === undefined || blocked
      ? []
      : [{ path, key, ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) }],
  );
}

/** The changes with the sources that the caller states. */
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

/** What differs between two desired states, in schema order. */
export function recordedChanges(before: DesiredBackend, after: DesiredBackend): RecordedChange[] {
  const documents = [before, after].map(({ settings, machine }): JsonObject => ({ ...settings, machine }));
  const [old = {}, next = {}] = documents;
  const changes = [...FIELDS, ...MACHINE_FIELDS].flatMap((field): RecordedChange[] => {
    const { path } = field;
    const from = leafAt(old, path);
    const to = leafAt(next, path);
    if (path === 'version' || equal(from, to)) return [];
    if (field.type.startsWith('map')) return entryChanges(path, from, to);
    const mask = 'sensitive' in field && field.sensitive;
    return [changeOf({ path }, from, to, mask)];
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
