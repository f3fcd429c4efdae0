import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EventBody } from '../../src/events/event.ts';
import { parseEventId } from '../../src/events/event-id.ts';
import { createEventRing, type EventRing } from '../../src/events/event-ring.ts';
import { historyEvents } from '../../src/events/history-events.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { runs } from '../helpers/rounds.ts';
import { schemaCheck } from '../helpers/schema-check.ts';

const AT = '2026-11-24T12:00:00.000Z';
const MANY = { events: 1_000_000, characters: 1_000_000_000 };
const RUN = '0000000a';

const noticed = (notice: string): EventBody => ({ type: 'notice', notice });
const CHANGES = [{ path: 'images.namespace', before: 'a', after: 'b' }];
const changed = (generation: number): EventBody => ({
  type: 'change',
  change: { generation, by: { how: 'set' }, changes: CHANGES },
});

function ringOf(entries: readonly HistoryEntry[], rest: Partial<Parameters<typeof createEventRing>[0]> = {}) {
  const ring = createEventRing({ run: RUN, dropped: 0, most: MANY, ...rest });
  for (const { body, at } of historyEvents(entries)) ring.add(body, at);
  return ring;
}

/** How many events there are after a number. */
function rest(ring: EventRing, after: number): number | 'lost' {
  const next = ring.next({ after, seen: 0 });
  if (next === 'lost') return 'lost';
  return next ? 1 + Number(rest(ring, next.sequence)) : 0;
}

describe('the ring', () => {
  test('holds a number of events, and the last one whatever its size', () => {
    const ring = ringOf([], { most: { events: 3, characters: 1_000 } });
    for (const text of ['a', 'b', 'c', 'd']) ring.add(noticed(text), AT);
    expect([1, 4].map((number) => ring.resume(`${RUN}-${number}-0-0`))).toEqual([
      { after: 1, seen: 0 },
      { after: 4, seen: 0 },
    ]);
    expect(ring.resume(`${RUN}-0-0-0`)).toEqual({ lost: 'the events after it are no longer held' });
    ring.add(noticed('x'.repeat(5_000)), AT);
    expect(rest(ring, 4)).toBe(1);
    expect(rest(ring, 3)).toBe('lost');
  });

  test.each([
    ['', 'it is not the id of an event'],
    ['12', 'it is not the id of an event'],
    [`${RUN}-2-0-0`, 'there is no event with this id'],
    ['0000000b-7-20-20', 'it is from another history'],
  ])('refuses the id %j', (id, lost) => {
    const ring = ringOf([]);
    ring.begin(1);
    ring.add(noticed('a'), AT);
    expect(ring.resume(id)).toEqual({ lost });
  });

  test('never gives a reader of an earlier run less than the history has dropped', () => {
    const entry: HistoryEntry = { generation: 9, at: AT, by: { how: 'set' }, changes: CHANGES };
    const ring = ringOf([entry], { dropped: 8 });
    ring.begin(10);
    expect(ring.resume('0000000b-7-7-7')).toEqual({ lost: 'the events after it are no longer held' });
    expect(ring.resume('0000000b-7-8-8')).toEqual({ after: 0, seen: 8 });
    expect(ring.resume('0000000b-7-9-9')).toEqual({ after: 1, seen: 9 });
  });

  test('every document is valid', async () => {
    const validate = schemaCheck('event');
    const ring = ringOf([]);
    const all: EventBody[] = [
      changed(2),
      { type: 'outcome', outcome: { generation: 2, result: 'failed', reason: 'no' } },
      { type: 'drift', drift: { generation: 2, condition: 'EngineReady', reason: 'Starting', message: 'm' } },
      { type: 'phase', phase: { name: 'engine start', startedAt: AT, ms: 1, outcome: 'done', generation: 2 } },
      { type: 'apply', apply: { generation: 2, state: 'running', step: { what: 'forward', name: 'a' } } },
      { type: 'maintenance', maintenance: { action: 'a', state: 'ended', error: 'e' } },
      noticed('n'),
      { type: 'service', service: { state: 'started', version: '1', pid: 2 } },
    ];
    for (const body of all) {
      const { sequence } = ring.last;
      ring.add(body, AT);
      const event = ring.next({ after: sequence, seen: 0 });
      if (!event || event === 'lost') throw new Error('the event is not held');
      const document = JSON.parse(event.text);
      expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
      expect(validate({ ...document, at: 'today' })).toBe(false);
    }
  });
});

type Act =
  | 'write'
  | 'write another'
  | 'settle'
  | 'settle the first'
  | 'settle, unrecorded'
  | 'notice'
  | 'restart'
  | 'drop'
  | 'read'
  | 'leave';

/** A home over several runs of its service, and a reader that comes and goes. */
function world(most: { events: number; characters: number }) {
  let history: HistoryEntry[] = [];
  let dropped = 0;
  let stored = 1;
  let first = 1;
  let run = 0;
  let ring = began();
  /** Written generations, all of them. */
  const written: number[] = [];
  const settled = new Set<number>();
  const reader = { id: ring.last.id, changes: [] as number[], outcomes: new Set<number>(), resets: 0 };

  function began(): EventRing {
    run += 1;
    const next = ringOf(history, { run: run.toString(16).padStart(8, '0'), dropped, most });
    next.begin(stored);
    next.add({ type: 'service', service: { state: 'started', version: '1', pid: run } }, AT);
    return next;
  }

  /** Writes, and with `alone` ends everything before. */
  function write(alone: boolean): void {
    while (alone && settle('superseded', live()[0]));
    stored += 1;
    history.push({ generation: stored, at: AT, by: { how: 'set' }, changes: CHANGES });
    written.push(stored);
    ring.add(changed(stored), AT);
  }

  /** What this run has written and not ended. */
  function live(): HistoryEntry[] {
    return history.filter(({ generation, outcome }) => generation >= first && !outcome);
  }

  function settle(result: 'converged' | 'superseded', entry: HistoryEntry | undefined, recorded = true): boolean {
    if (!entry) return false;
    if (recorded) {
      entry.outcome = { result, at: AT };
      settled.add(entry.generation);
    }
    ring.add({ type: 'outcome', outcome: { generation: entry.generation, result } }, AT);
    return true;
  }

  function read(): void {
    const found = ring.resume(reader.id);
    if ('lost' in found) {
      reader.resets += 1;
      reader.changes = [...written];
      reader.outcomes = new Set(settled);
      reader.id = ring.last.id;
      return;
    }
    for (let position = found; ; ) {
      const next = ring.next(position);
      if (next === 'lost') throw new Error('resumed at an event that is not held');
      if (!next) return;
      position = { ...position, after: next.sequence };
      reader.id = next.id;
      const event = JSON.parse(next.text);
      if (event.type === 'change') reader.changes.push(event.change.generation);
      if (event.type === 'outcome') reader.outcomes.add(event.outcome.generation);
    }
  }

  const acts: Record<Act, () => void> = {
    write: () => write(true),
    'write another': () => write(false),
    settle: () => void settle('converged', live().at(-1)),
    'settle the first': () => void settle('converged', live()[0]),
    'settle, unrecorded': () => void settle('converged', live().at(-1), false),
    notice: () => void ring.add(noticed('n'), AT),
    restart() {
      stored += 1;
      first = stored;
      ring = began();
    },
    drop() {
      const [oldest] = history;
      if (oldest) dropped = oldest.generation;
      history = history.slice(1);
    },
    read,
    leave: () => undefined,
  };
  return { act: (name: Act) => acts[name](), read, reader, written, settled };
}

const acts = (names: readonly Act[]) => fc.array(fc.constantFrom(...names), { maxLength: 40 });

test('a reader gets every change once and in order, over any restarts, while everything is held', () => {
  fc.assert(
    fc.property(
      acts(['write', 'write another', 'settle', 'settle the first', 'settle, unrecorded', 'notice', 'restart', 'read']),
      (steps) => {
        const { act, read, reader, written, settled } = world(MANY);
        for (const step of steps) act(step);
        read();
        expect(reader).toMatchObject({ changes: written, resets: 0 });
        for (const generation of settled) expect(reader.outcomes).toContain(generation);
        const { id } = reader;
        read();
        expect(reader).toMatchObject({ id, changes: written });
      },
    ),
    { numRuns: runs(1_000) },
  );
});

test('where something is no longer held, a reader gets every change or a reset, never silence', () => {
  let resets = 0;
  fc.assert(
    fc.property(
      acts(['write', 'write another', 'settle', 'settle the first', 'notice', 'restart', 'drop', 'read']),
      fc.integer({ min: 1, max: 12 }),
      (steps, events) => {
        const { act, read, reader, written, settled } = world({ events, characters: 1_000_000 });
        for (const step of steps) act(step);
        read();
        expect(reader.changes).toEqual(written);
        for (const generation of settled) expect(reader.outcomes).toContain(generation);
        resets += reader.resets;
      },
    ),
    { numRuns: runs(1_000) },
  );
  expect(resets).toBeGreaterThan(0);
});

test('ids are read as written', () => {
  expect(parseEventId('0123abcd-12-3-2')).toEqual({ run: '0123abcd', sequence: 12, changed: 3, settled: 2 });
  for (const text of ['0123abcd-12', '0123ABCD-1-1-1', '0123abcd-1-1-1-1', '0123abcd--1-1-1', ' 0123abcd-1-1-1']) {
    expect(parseEventId(text)).toBeUndefined();
  }
});
