import { RdError } from '../errors.ts';
import type { EventDocument, EventKind } from '../events/event.ts';
import type { Clock } from '../os/clock.ts';
import type { StatusDocument } from '../reconcile/status-document.ts';

/** A message of a stream: an event, or the whole status if `status` was selected. */
export type StreamMessage = EventDocument | StatusDocument;

export interface EventsRequest {
  kinds: readonly EventKind[];
  /** The id to continue after. If absent, the stream begins with the next event. */
  since?: string | undefined;
  onMessage(message: StreamMessage): void;
  /** Called with the position in the stream: at once, with every event, and with every heartbeat. */
  onPosition?(id: string): void;
  signal: AbortSignal;
  clock?: Clock;
}

/** An event of a stream as received. */
interface RawEvent {
  name: string;
  data: string;
}

interface ReaderCalls {
  onEvent(event: RawEvent): void;
  /** Called with an id after the event that it belongs to. */
  onId?(id: string): void;
  /** Called for a comment, which a server sends as a heartbeat. */
  onComment?(): void;
}

/** Characters of a line; a longer line is not from our service. */
const LONGEST_LINE = 64 * 1024 * 1024;

/** Parses server-sent events (WHATWG HTML, 9.2.6) from chunks. */
export function eventReader({ onEvent, onId, onComment }: ReaderCalls): (part: Buffer) => void {
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  let name = '';
  let id: string | undefined;

  function line(text: string): void {
    const at = text.indexOf(':');
    const field = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? '' : text.slice(at + 1).replace(/^ /, '');
    if (text === '') dispatch();
    else if (field === '') onComment?.();
    else if (field === 'data') data.push(value);
    else if (field === 'event') name = value;
    else if (field === 'id') id = value;
  }

  function dispatch(): void {
    const event = { name: name || 'message', data: data.join('\n') };
    const isEvent = data.length > 0;
    const position = id;
    data = [];
    name = '';
    id = undefined;
    if (isEvent) onEvent(event);
    if (position !== undefined) onId?.(position);
  }

  return (part) => {
    const lines = (rest + decoder.decode(part, { stream: true })).split(/\r?\n/);
    rest = lines.pop() ?? '';
    if (rest.length > LONGEST_LINE) throw new Error('the stream of events has a line without an end');
    for (const text of lines) line(text);
  };
}

/** Milliseconds without a heartbeat (one comes every 15 s) after which a connection counts as dead. */
export const SILENCE_MS = 45_000;

/**
 * Watches a connection: `signal` aborts once a server that sends heartbeats has been silent for too long. Call `heard` with every chunk,
 * `beats` with every heartbeat, and `end` when the connection is over.
 */
export function silenceWatch(clock: Clock) {
  const silent = new AbortController();
  const over = new AbortController();
  let chunks = 0;
  let hasHeartbeat = false;
  const watching = (async () => {
    while (!over.signal.aborted) {
      const before = chunks;
      await clock.sleep(SILENCE_MS, over.signal);
      if (hasHeartbeat && before === chunks && !over.signal.aborted) return silent.abort();
    }
  })();
  return {
    signal: silent.signal,
    heard() {
      chunks += 1;
    },
    beats() {
      hasHeartbeat = true;
    },
    async end() {
      over.abort();
      await watching;
    },
  };
}

export function silentError(): RdError {
  return new RdError('ERR_CONNECTION', `the service has sent nothing for ${SILENCE_MS / 1000} s`, {
    advice: 'It may hang; check its log.',
  });
}
