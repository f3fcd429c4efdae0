/**
 * A position in the events of a home: `9f86d081-57-24-23`. Event numbers count within one run of the service; a later run continues from the
 * generations, because it knows them from the history.
 */
export interface EventId {
  /** Random for each run of the service. */
  run: string;
  /** Number of the last event, from 1; 0 before the first one. */
  sequence: number;
  /** The last generation whose change was sent. */
  changed: number;
  /** The last generation up to which every outcome was sent. */
  settled: number;
}

export function eventIdText({ run, sequence, changed, settled }: EventId): string {
  return `${run}-${sequence}-${changed}-${settled}`;
}

/** Parses an event id; undefined for any other text. */
export function parseEventId(text: string): EventId | undefined {
  const [, run, ...numbers] = /^([0-9a-f]{8})-(\d{1,15})-(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  const [sequence = 0, changed = 0, settled = 0] = numbers.map(Number);
  return run === undefined ? undefined : { run, sequence, changed, settled };
}
