import type { RecordedChange } from '../plan/history.ts';
import type { EventBody, EventDocument } from './event.ts';
import { type EventId, eventIdText, parseEventId } from './event-id.ts';

/** An event with its number in this run and its document on one line. */
export interface HeldEvent {
  sequence: number;
  id: string;
  type: EventDocument['type'];
  text: string;
}

/** A reader's place in the events. */
export interface Position {
  /** The number of the last event that it was offered. */
  after: number;
  /** The generation up to which it has seen the changes in the events of earlier runs. */
  seen: number;
}

/** The latest events, within a limit of number and size. */
export interface EventRing {
  /** Number and id of the last event. */
  readonly last: Pick<HeldEvent, 'sequence' | 'id'>;
  /**
   * Appends an event.
   * @param at RFC 3339.
   */
  add(body: EventBody, at: string): void;
  /** Ends the part rebuilt from the history, which contains every change before `generation`. */
  begin(generation: number): void;
  /** Returns the next event for a reader, undefined if there is none yet, or `lost` if it is no longer held. */
  next(position: Position): HeldEvent | undefined | 'lost';
  /** Returns the place at which a reader that has seen everything up to `id` continues, or the reason that it cannot. */
  resume(id: string): Position | { lost: string };
}

/** The part of the ring that readers of events use. */
export interface EventSource extends Pick<EventRing, 'last' | 'next' | 'resume'> {
  /** Calls back after every event. Returns the unsubscribe function. */
  onEvent(listener: () => void): () => void;
}

export interface RingInput {
  /** Eight hexadecimal digits, different for each run of the service. */
  run: string;
  /** The last generation that was dropped from the history before the rebuilt events; 0 if none was. */
  dropped: number;
  /** Maximum number of events, and of characters in their documents. The last event is always held. */
  most: { events: number; characters: number };
}

/**
 * Creates an empty ring. First the events of the history are added, then `begin` is called, then everything that happens. A reader that comes from an
 * earlier run gets the changes and outcomes that it has not seen, and then this run from its beginning; an outcome may come twice where changes
 * overlapped.
 */
export function createEventRing({ run, dropped, most }: RingInput): EventRing {
  let held: (HeldEvent & { generation: number })[] = [];
  let characters = 0;
  let sequence = 0;
  let changed = 0;
  /** Generations whose outcome is still pending. */
  const open = new Set<number>();
  /** The last event of the rebuilt part. */
  let rebuilt = 0;
  /** Some events up to this generation are not held. */
  let floor = dropped;

  function last(): EventRing['last'] {
    const settled = Math.min(changed, ...[...open].map((generation) => generation - 1));
    return { sequence, id: eventIdText({ run, sequence, changed, settled }) };
  }

  function evict(): void {
    let gone = 0;
    while (held.length - gone > 1 && (held.length - gone > most.events || characters > most.characters)) {
      const oldest = held[gone];
      characters -= oldest?.text.length ?? 0;
      floor = Math.max(floor, oldest?.generation ?? 0);
      gone += 1;
    }
    if (gone > 0) held = held.slice(gone);
  }

  function firstHeld(): number {
    return held[0]?.sequence ?? sequence + 1;
  }

  function isNew({ type, generation, sequence: number }: (typeof held)[number], id: EventId): boolean {
    return number > rebuilt || generation > (type === 'change' ? id.changed : id.settled);
  }

  return {
    get last() {
      return last();
    },
    add(body, at) {
      sequence += 1;
      if (body.type === 'change') {
        changed = Math.max(changed, body.change.generation);
        // Another attempt is not in the history and has no outcome.
        if (body.change.changes.length > 0 || body.change.loss) open.add(body.change.generation);
      }
      if (body.type === 'outcome') open.delete(body.outcome.generation);
      const { id } = last();
      const document: EventDocument = { kind: 'Event', formatVersion: 1, id, at, ...withCutValues(body) };
      const text = JSON.stringify(document);
      held.push({ sequence, id, type: body.type, text, generation: generationOf(body) });
      characters += text.length;
      evict();
    },
    begin(generation) {
      rebuilt = sequence;
      changed = Math.max(changed, generation - 1);
      open.clear();
    },
    next({ after, seen }) {
      for (let number = after + 1; number <= sequence; number += 1) {
        const event = held[number - firstHeld()];
        if (!event) return 'lost';
        if (event.type === 'change' && number <= rebuilt && event.generation <= seen) continue;
        return event;
      }
      return undefined;
    },
    resume(text) {
      const id = parseEventId(text);
      if (!id) return { lost: 'it is not the id of an event' };
      if (id.run === run) {
        if (id.sequence > sequence) return { lost: 'there is no event with this id' };
        return id.sequence + 1 < firstHeld() ? { lost: TOO_OLD } : { after: id.sequence, seen: 0 };
      }
      if (id.changed > changed) return { lost: 'it is from another history' };
      // Everything of this run is new to a reader of an earlier one.
      if (id.settled < floor || firstHeld() > rebuilt + 1) return { lost: TOO_OLD };
      const first = held.find((event) => isNew(event, id))?.sequence ?? sequence + 1;
      return { after: first - 1, seen: id.changed };
    },
  };
}

const TOO_OLD = 'the events after it are no longer held';

/** Returns the generation of an event, or 0 if the history does not record it. */
function generationOf(body: EventBody): number {
  if (body.type === 'change') return body.change.generation;
  return body.type === 'outcome' ? body.outcome.generation : 0;
}

/** Maximum characters of a value in an event. The history has the whole value. */
const LONGEST = 4_096;
/** Characters kept of a value that is too long. */
const SHOWN = 200;

/** Returns the event with long values cut, which would take much of the memory for events and of each reader. Pure. */
function withCutValues(body: EventBody): EventBody {
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
