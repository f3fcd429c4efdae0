import type { EventKind } from '../events/event.ts';
import type { EventSource, HeldEvent, Position } from '../events/event-ring.ts';
import type { Clock } from '../os/clock.ts';
import type { Log } from '../os/limited-log.ts';

/** Milliseconds between two heartbeats of a stream. */
export const HEARTBEAT_MS = 15_000;
/** Heartbeats without any progress after which a reader is dropped. */
const PATIENCE = 4;
/** Milliseconds between checks of the status: user files and published ports change without an event of the loop. */
const RECHECK_MS = 1_000;

/** The part of `ServerResponse` that a stream writes to. */
export interface EventSink {
  readonly writableNeedDrain: boolean;
  write(data: string | Uint8Array): unknown;
  end(): unknown;
  destroy(): unknown;
  on(event: 'drain', listener: () => void): unknown;
  once(event: 'close', listener: () => void): unknown;
}

/** The event and status sources of the streams. */
export interface HubInput {
  /** The events for `GET /v2/events`. */
  events: EventSource;
  /** Returns the current status document, on one line. */
  status(): string;
  /** Calls back whenever the status may have changed. Returns the unsubscribe function. */
  onStatus(listener: () => void): () => void;
  /** Functions that end open event streams. */
  streams: Set<() => void>;
  clock: Clock;
  log: Log;
}

interface Reader {
  sink: EventSink;
  kinds: ReadonlySet<EventKind>;
  position: Position;
  /** Id of the last event that the reader was offered. */
  id: string;
  /** Number of the last status that was sent. */
  status?: number;
  /** Heartbeats since the reader last took data. */
  late: number;
}

/** Streams of server-sent events. */
export interface EventHub {
  /** Serves a reader until it disconnects, is dropped, or `streams` ends it. @param id the last event that the reader has seen. */
  open(sink: EventSink, kinds: ReadonlySet<EventKind>, id?: string): void;
}

/**
 * Creates the hub. Readers share the bytes of events and of the last status, and only a position is kept per reader, so a slow one costs no memory. A
 * slow reader skips intermediate statuses, never the last one. It is dropped when it falls behind the held events, or takes nothing for a minute.
 */
export function createEventHub({ events, status, onStatus, streams, clock, log }: HubInput): EventHub {
  const readers = new Set<Reader>();
  let current = '';
  /** Increases with every new status. */
  let version = 0;
  /** The bytes of the last status at an event id, shared by all readers that have seen all events. */
  let sent: { id: string; version: number; bytes: Buffer } | undefined;
  const frames = new WeakMap<HeldEvent, Buffer>();
  /** Stops serving readers; undefined while there are none. */
  let stop: (() => void) | undefined;

  function serve(): void {
    const ending = new AbortController();
    const unsubscribe = [events.onEvent(sendAll), onStatus(refresh)];
    stop = () => {
      ending.abort();
      for (const each of unsubscribe) each();
      stop = undefined;
    };
    void every(HEARTBEAT_MS, ending.signal, beat);
    void every(RECHECK_MS, ending.signal, refresh);
  }

  async function every(ms: number, signal: AbortSignal, work: () => void): Promise<void> {
    for (;;) {
      await clock.sleep(ms, signal);
      if (signal.aborted) return;
      work();
    }
  }

  function refresh(): void {
    if ([...readers].some(({ kinds }) => kinds.has('status'))) update();
    sendAll();
  }

  function update(): void {
    const text = status();
    if (text === current) return;
    current = text;
    version += 1;
  }

  function eventFrame(event: HeldEvent): Buffer {
    const known = frames.get(event);
    if (known) return known;
    const bytes = frame(event.type, event.text, event.id);
    frames.set(event, bytes);
    return bytes;
  }

  function statusFrame(id: string): Buffer {
    if (sent?.id !== id || sent.version !== version) sent = { id, version, bytes: frame('status', current, id) };
    return sent.bytes;
  }

  function sendAll(): void {
    for (const reader of readers) send(reader);
  }

  function send(reader: Reader): void {
    const { sink, kinds } = reader;
    while (!sink.writableNeedDrain) {
      const next = events.next(reader.position);
      if (next === 'lost') {
        drop(reader, 'it is slower than the events');
        return;
      }
      if (next) {
        reader.position = { ...reader.position, after: next.sequence };
        reader.id = next.id;
        if (next.type !== 'reset' && kinds.has(next.type)) sink.write(eventFrame(next));
        continue;
      }
      if (kinds.has('status') && reader.status !== version) {
        reader.status = version;
        sink.write(statusFrame(reader.id));
      }
      return;
    }
  }

  function beat(): void {
    for (const reader of readers) {
      if (!reader.sink.writableNeedDrain) {
        reader.late = 0;
        reader.sink.write(comment(reader.id));
        continue;
      }
      reader.late += 1;
      if (reader.late >= PATIENCE) drop(reader, `it has taken nothing for ${(PATIENCE * HEARTBEAT_MS) / 1000} s`);
    }
  }

  function drop(reader: Reader, reason: string): void {
    readers.delete(reader);
    log('warn', 'a reader of events was dropped', { reason });
    // Destroyed, not ended: an end would wait until the reader takes the buffered data.
    reader.sink.destroy();
  }

  return {
    open(sink, kinds, id) {
      const { last } = events;
      const now = { after: last.sequence, seen: 0 };
      const found = id === undefined ? now : events.resume(id);
      const reader: Reader = { sink, kinds, position: now, id: last.id, late: 0 };
      if ('lost' in found) {
        const reset = { type: 'reset', reset: { reason: `Events are missing here: ${found.lost}.` } } as const;
        const document = { kind: 'Event', formatVersion: 1, id: last.id, at: timeNow(), ...reset };
        sink.write(frame('reset', JSON.stringify(document), last.id));
      } else {
        reader.position = found;
        if (id !== undefined && found.after < last.sequence) reader.id = id;
        // Sends the position even to a reader that never gets an event.
        sink.write(comment(reader.id));
      }
      const end = () => sink.end();
      streams.add(end);
      readers.add(reader);
      if (!stop) serve();
      sink.on('drain', () => {
        reader.late = 0;
        send(reader);
      });
      sink.once('close', () => {
        streams.delete(end);
        readers.delete(reader);
        if (readers.size === 0) stop?.();
      });
      if (kinds.has('status')) update();
      send(reader);
    },
  };

  function timeNow(): string {
    return new Date(clock.now()).toISOString();
  }
}

/** Formats a server-sent event with an id (WHATWG HTML, 9.2). */
function frame(name: string, text: string, id: string): Buffer {
  return Buffer.from(`id: ${id}\nevent: ${name}\ndata: ${text}\n\n`);
}

/** Formats a heartbeat: a comment and the position, which dispatch no event. */
function comment(id: string): string {
  return `:\nid: ${id}\n\n`;
}
