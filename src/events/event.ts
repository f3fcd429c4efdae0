import type { HistoryEntry, RecordedOutcome } from '../plan/history.ts';
import type { Condition, Phase } from '../reconcile/contract.ts';
import type { ApplyStep, ApplyWork } from '../reconcile/status-document.ts';

/** What a reader of `GET /v2/events` can select: `status` is the whole document on every change, the others are single events. */
export const EVENT_KINDS = [
  'status',
  'change',
  'outcome',
  'drift',
  'phase',
  'condition',
  'apply',
  'maintenance',
  'notice',
  'service',
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

/** What happened; the member named by `type` holds the facts. */
export type EventBody =
  /** The desired state was written, or port forwards were. */
  | { type: 'change'; change: Pick<HistoryEntry, 'generation' | 'by' | 'changes' | 'loss'> }
  /** What became of a change. */
  | { type: 'outcome'; outcome: { generation: number; result: RecordedOutcome['result']; reason?: string } }
  /** Something other than a change of the desired state took the backend out of it. */
  | { type: 'drift'; drift: { generation: number; condition?: Condition['type']; reason?: string; message: string } }
  /** A step of the backend began, or ended if it has `outcome`. */
  | { type: 'phase'; phase: Phase & { generation: number } }
  | { type: 'condition'; condition: Condition }
  /** An apply began its work beyond settings and power, began one of its steps, or ended. */
  | { type: 'apply'; apply: Omit<ApplyWork, 'steps'> & { step?: ApplyStep } }
  /** Work on the backend's data, such as a snapshot. `error`: it ended without success. */
  | { type: 'maintenance'; maintenance: { action: string; state: 'begun' | 'ended'; error?: string } }
  | { type: 'notice'; notice: string }
  | { type: 'service'; service: { state: 'started' | 'stopping'; version: string; pid: number } }
  /** The reader's position is not known or no longer held: events are missing here. */
  | { type: 'reset'; reset: { reason: string } };

/** One event as sent: `schemas/event.json`. */
export type EventDocument = EventBody & {
  kind: 'Event';
  formatVersion: 1;
  /** The position after this event; a reader that was cut off continues from it. */
  id: string;
  /** RFC 3339. */
  at: string;
};
