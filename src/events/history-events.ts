import { defined } from '../json.ts';
import type { HistoryEntry } from '../plan/history.ts';
import type { EventBody } from './event.ts';

/** Returns the events that the history records, in order, each with its time (RFC 3339). */
export function historyEvents(entries: readonly HistoryEntry[]): { body: EventBody; at: string }[] {
  return entries.flatMap(({ generation, at, by, changes, loss, outcome }) => {
    const change = { generation, by, changes, ...(loss ? { loss } : {}) };
    const written = { body: { type: 'change', change } as const, at };
    if (!outcome) return [written];
    const { result, reason } = outcome;
    const ended = { generation, result, ...defined({ reason }) };
    return [written, { body: { type: 'outcome', outcome: ended } as const, at: outcome.at }];
  });
}
