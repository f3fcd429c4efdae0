import type { RecordedChange } from '../plan/history.ts';
import type { EventBody } from './event.ts';

/** Characters of a value in an event. The history has it whole. */
const LONGEST = 4_096;
/** Those that are left of a longer one. */
const SHOWN = 200;

/** Pure: the event, with the beginning of values that would take much of the memory for events and of each reader. */
export function withCutValues(body: EventBody): EventBody {
  if (body.type !== 'change') return body;
  const { changes, ...change } = body.change;
  return { type: 'change', change: { ...change, changes: changes.map(cutChange) } };
}

type Recorded = Exclude<RecordedChange['before'], undefined>;

function cutChange({ before, after, ...change }: RecordedChange): RecordedChange {
  return {
    ...change,
    ...(before === undefined ? {} : { before: cut(before) }),
    ...(after === undefined ? {} : { after: cut(after) }),
  };
}

function cut<T extends Recorded>(value: T): T | string {
  const text = JSON.stringify(value);
  return text.length <= LONGEST ? value : `${text.slice(0, SHOWN)}… (${text.length} characters; the history has all)`;
}
