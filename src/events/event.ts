export type { EventBody, EventDocument } from './event.gen.ts';

/** The kinds that a reader of `GET /v2/events` can select: `status` is the whole document on every change, the others are single events. */
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
