import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eventReader, SILENCE_MS, silenceWatch } from '../../src/client/event-stream.ts';
import { steppedClock } from '../helpers/stepped-clock.ts';

function read(parts: readonly Buffer[]): string[] {
  const found: string[] = [];
  const reader = eventReader({
    onEvent: ({ name, data }) => found.push(`${name}: ${data}`),
    onId: (id) => found.push(`id ${id}`),
    onComment: () => found.push('comment'),
  });
  for (const part of parts) reader(part);
  return found;
}

test.each([
  ['one event', 'event: status\ndata: {"a":1}\n\n', ['status: {"a":1}']],
  ['lines of one event', 'data: a\ndata: b\n\n', ['message: a\nb']],
  ['without a blank, with CRLF', 'data:a\r\n\r\n', ['message: a']],
  ['an event without data', 'event: x\n\ndata: a\n\n', ['message: a']],
  ['an event with a position', 'id: 7\nevent: x\ndata: a\n\n', ['x: a', 'id 7']],
  ['a heartbeat with a position', ':\nid: 7\n\n', ['comment', 'id 7']],
  ['fields that are not known', 'retry: 5\nnonsense\ndata: a\n\n', ['message: a']],
  ['what has no end yet', 'data: a\n\ndata: b\n', ['message: a']],
])('%s', (_what, text, data) => {
  expect(read([Buffer.from(text)])).toEqual(data);
});

test('can be split anywhere, including inside a character', () => {
  const text = Buffer.from('event: status\ndata: {"name":"é → 🙂"}\n\nid: 3\ndata: b\n\n');
  fc.assert(
    fc.property(fc.array(fc.nat(text.length), { maxLength: 8 }), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), text.length];
      const parts = at.slice(1).map((end, index) => text.subarray(at[index], end));
      expect(read(parts)).toEqual(['status: {"name":"é → 🙂"}', 'message: b', 'id 3']);
    }),
  );
});

test('a connection is dead when the heartbeats stop, and not before', async () => {
  const clock = steppedClock();
  const watch = silenceWatch(clock);
  watch.heard();
  watch.beats();
  for (let beat = 0; beat < 10; beat += 1) {
    await clock.pass(SILENCE_MS);
    expect(watch.signal.aborted).toBe(false);
    watch.heard();
  }
  await clock.pass(2 * SILENCE_MS);
  expect(watch.signal.aborted).toBe(true);
  await watch.end();
});

test('a server without heartbeats may be silent', async () => {
  const clock = steppedClock();
  const watch = silenceWatch(clock);
  watch.heard();
  await clock.pass(10 * SILENCE_MS);
  expect(watch.signal.aborted).toBe(false);
  await watch.end();
  expect(clock.sleepers()).toBe(0);
});
