import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createEventHub, type EventSink, HEARTBEAT_MS } from '../../src/api/event-hub.ts';
import { createStreamLimit, MOST_STREAMS } from '../../src/api/routes/events.ts';
import { RdError } from '../../src/errors.ts';
import { EVENT_KINDS, type EventKind } from '../../src/events/event.ts';
import { createServiceEvents } from '../../src/service/events.ts';
import { steppedClock } from '../helpers/stepped-clock.ts';

/** A hub, and readers that take what is sent only when the test lets them. */
function stage() {
  const clock = steppedClock();
  const events = createServiceEvents({
    ...{ history: { entries: [], dropped: 0 }, generation: 1, now: clock.now },
    most: { events: 20, characters: 100_000 },
  });
  const listeners = new Set<() => void>();
  const streams = new Set<() => void>();
  const logged: unknown[] = [];
  let status = 'first';
  const hub = createEventHub({
    ...{ events, streams, clock },
    status: () => JSON.stringify(status),
    onStatus(listen) {
      listeners.add(listen);
      return () => listeners.delete(listen);
    },
    log: (_level, message, values) => logged.push([message, values]),
  });

  function reader(kinds: readonly EventKind[], id?: string) {
    const taken: string[] = [];
    const written: (string | Uint8Array)[] = [];
    const on: Record<string, () => void> = {};
    let blocked = false;
    let gone = false;
    const leave = () => {
      gone = true;
      on.close?.();
    };
    const sink: EventSink = {
      get writableNeedDrain() {
        return blocked;
      },
      write: (data) => {
        written.push(data);
        taken.push(String(data));
      },
      end: leave,
      destroy: leave,
      on: (name, listener) => {
        on[name] = listener;
      },
      once: (name, listener) => {
        on[name] = listener;
      },
    };
    hub.open(sink, new Set(kinds), id);
    return {
      /** Names of the events, statuses with their text, `beat` for a heartbeat. */
      seen: () =>
        taken.splice(0).map((text) => {
          const [, name] = /^event: (.*)$/m.exec(text) ?? [];
          return name === 'status' ? `${JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '')}` : (name ?? 'beat');
        }),
      ids: () => taken.splice(0).map((text) => /^id: (.*)$/m.exec(text)?.[1] ?? ''),
      written: () => written.filter((data) => typeof data !== 'string'),
      block: () => {
        blocked = true;
      },
      drain: () => {
        blocked = false;
        on.drain?.();
      },
      leave,
      gone: () => gone,
    };
  }

  return {
    ...{ clock, events, reader, logged, streams },
    readers: () => listeners.size,
    notice: (text: string) => events.emit({ type: 'notice', notice: text }),
    become(text: string) {
      status = text;
      for (const listen of listeners) listen();
    },
  };
}

test('the status comes first, and then every change of it; other kinds only where they were asked for', () => {
  const { reader, notice, become } = stage();
  const plain = reader(['status']);
  const all = reader(EVENT_KINDS);
  const notices = reader(['notice']);
  notice('a');
  become('second');
  become('second');
  expect(plain.seen()).toEqual(['beat', 'first', 'second']);
  expect(all.seen()).toEqual(['beat', 'first', 'notice', 'second']);
  expect(notices.seen()).toEqual(['beat', 'notice']);
});

test('a heartbeat every 15 s has the position', async () => {
  const { reader, clock, notice, events } = stage();
  const quiet = reader(['change']);
  notice('not for this reader');
  await clock.pass(HEARTBEAT_MS);
  await clock.pass(HEARTBEAT_MS - 1);
  const ids = quiet.ids();
  expect(ids).toHaveLength(2);
  expect(ids[1]).toBe(events.last.id);
});

test('a reader that comes back gets what it missed before the status; one that is too late, a reset', () => {
  const { reader, notice, events } = stage();
  const { id } = events.last;
  notice('a');
  notice('b');
  expect(reader(EVENT_KINDS, id).seen()).toEqual(['beat', 'notice', 'notice', 'first']);
  for (let count = 0; count < 30; count += 1) notice('more');
  const late = reader(['status'], id);
  expect(late.seen()).toEqual(['reset', 'first']);
  expect(reader(['notice'], 'nonsense').seen()).toEqual(['reset']);
});

test('a slow reader of the status skips what was in between, never the last one', () => {
  const { reader, become } = stage();
  const slow = reader(['status']);
  slow.block();
  for (const text of ['a', 'b', 'c']) become(text);
  expect(slow.seen()).toEqual(['beat', 'first']);
  slow.drain();
  expect(slow.seen()).toEqual(['c']);
});

test('a slow reader catches up while its events are held, and is dropped with a word when they are not', () => {
  const { reader, notice, logged } = stage();
  const slow = reader(['notice']);
  slow.block();
  for (let count = 0; count < 15; count += 1) notice('n');
  slow.drain();
  expect(slow.seen()).toHaveLength(16);
  slow.block();
  for (let count = 0; count < 25; count += 1) notice('n');
  expect(slow.gone()).toBe(false);
  slow.drain();
  expect(slow.gone()).toBe(true);
  expect(logged).toEqual([['a reader of events was dropped', { reason: 'it is slower than the events' }]]);
});

test('a reader that takes nothing for a minute is dropped; one that takes something in between is not', async () => {
  const { reader, clock, logged } = stage();
  const stalled = reader(['status']);
  const slow = reader(['status']);
  for (const each of [stalled, slow]) each.block();
  await clock.pass(3 * HEARTBEAT_MS);
  slow.drain();
  slow.block();
  await clock.pass(2 * HEARTBEAT_MS);
  expect([stalled.gone(), slow.gone()]).toEqual([true, false]);
  expect(logged).toEqual([['a reader of events was dropped', { reason: 'it has taken nothing for 60 s' }]]);
});

test('nothing is left of readers that have gone', () => {
  const { reader, clock, readers, streams } = stage();
  const all = [reader(['status']), reader(['change'])];
  expect([readers(), streams.size]).toEqual([1, 2]);
  for (const each of all) each.leave();
  expect([readers(), streams.size, clock.sleepers()]).toEqual([0, 0, 0]);
  const [next] = [reader(['status'])];
  for (const end of streams) end();
  expect(next.gone()).toBe(true);
  expect(readers()).toBe(0);
});

test('all readers get the same bytes of an event and of a status, also those that take them later', () => {
  const { reader, notice, become } = stage();
  const [quick, slow] = [reader(EVENT_KINDS), reader(EVENT_KINDS)];
  slow.block();
  notice('a');
  become('second');
  slow.drain();
  expect(quick.seen()).toEqual(['beat', 'first', 'notice', 'second']);
  expect(quick.written()).toHaveLength(3);
  for (const [index, bytes] of quick.written().entries()) expect(slow.written()[index]).toBe(bytes);
});

test('a caller has a limited number of streams, and another caller its own', () => {
  const admit = createStreamLimit();
  const closing: (() => void)[] = [];
  const reply = { once: (_name: string, close: () => void) => closing.push(close) } as unknown as ServerResponse;
  for (let count = 0; count < MOST_STREAMS; count += 1) admit('monitoring', reply);
  expect(() => admit('monitoring', reply)).toThrow('128 event streams of this caller are open already');
  admit(undefined, reply);
  closing[0]?.();
  admit('monitoring', reply);
  expect(() => admit('monitoring', reply)).toThrow(RdError);
});
