import { FORWARDS_PATH, type HistoryEntry, type RecordedChange, recordedChanges } from '../../../src/plan/history.ts';
import type { Desired } from '../../../src/reconcile/contract.ts';

/** A write that was accepted. */
export interface Accepted {
  before: Desired;
  next: Desired;
  how: string;
  /** Changes that it announced. */
  announced: readonly RecordedChange[];
}

/** What the history has to say of a write; nothing of one without a change. */
export function expectedEntry({ before, next, how, announced }: Accepted) {
  const changes = [...recordedChanges(before, next), ...announced];
  return changes.length === 0 ? [] : [{ generation: next.generation, how, changes }];
}

/** The same of an entry, without what tests do not script. */
export function briefEntry({ generation, by, changes }: HistoryEntry) {
  return { generation, how: by.how, changes: changes.map(({ source: _, ...change }) => change) };
}

/** A change of the port of one service. */
export function forwardChange(before: number | undefined, after: number): RecordedChange {
  return { path: FORWARDS_PATH, key: 'default/web:80', ...(before === undefined ? {} : { before }), after };
}

/** Repeatable random numbers in [0, 1): mulberry32. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
