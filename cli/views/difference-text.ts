import { isDeepStrictEqual } from 'node:util';
import type { JsonValue } from '../../src/json.ts';
import type { Sensitive } from '../../src/plan/change.ts';
import { valueText } from './text.ts';

type Value = JsonValue | Sensitive | undefined;

/** The text of a difference between two values. */
export interface DifferenceText {
  /** One line: `old → new`; for lists with entries in common, the number of differing ones. */
  brief: string;
  /** Differing entries of such lists, `- old` before `+ new`, one per line; empty otherwise. */
  entries: string[];
}

/**
 * Formats a difference. Lists with entries in common differ by entry, other values as a whole. Entries are compared by value, and one that is listed
 * twice counts twice. `without` is the text for a side that has no value.
 */
export function differenceText(before: Value, after: Value, without = ['(nothing)', '(removed)']): DifferenceText {
  const byEntry = Array.isArray(before) && Array.isArray(after) ? listDifference(before, after) : undefined;
  if (byEntry) return byEntry;
  const [old = '', now = ''] = [before, after].map((value, side) =>
    value === undefined ? (without[side] ?? '') : valueText(value),
  );
  return { brief: `${old} → ${now}`, entries: [] };
}

function listDifference(before: JsonValue[], after: JsonValue[]): DifferenceText | undefined {
  const [old, now] = [before.map(valueText), after.map(valueText)];
  const removed = withoutThose(old, now);
  const added = withoutThose(now, old);
  const same = old.length - removed.length;
  // Two short lists are read faster side by side.
  if (same === 0 || Math.max(old.length, now.length) <= 2 || isDeepStrictEqual(old, now)) return undefined;
  if (removed.length + added.length === 0) return { brief: `another order: ${valueText(after)}`, entries: [] };
  const parts = [removed.length > 0 && `${removed.length} removed`, added.length > 0 && `${added.length} added`];
  return {
    brief: [...parts.filter((part) => part !== false), `${same} unchanged`].join(', '),
    entries: [...removed.map((entry) => `- ${entry}`), ...added.map((entry) => `+ ${entry}`)],
  };
}

/** Formats entries as lines below that of their setting. */
export function entryLines(entries: readonly string[]): string[] {
  return entries.map((entry) => `      ${entry}`);
}

/** Returns the entries of a list that are left once each of the others has taken one away. */
function withoutThose(list: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const other of others) counts.set(other, (counts.get(other) ?? 0) + 1);
  return list.filter((entry) => {
    const left = counts.get(entry) ?? 0;
    counts.set(entry, left - 1);
    return left <= 0;
  });
}
