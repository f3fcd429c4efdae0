import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eventReader } from '../../src/client/client.ts';

function read(parts: readonly Buffer[]): string[] {
  const found: string[] = [];
  const reader = eventReader((data) => found.push(data));
  for (const part of parts) reader(part);
  return found;
}

test.each([
  ['one event', 'event: status\ndata: {"a":1}\n\n', ['{"a":1}']],
  ['lines of one event', 'data: a\ndata: b\n\n', ['a\nb']],
  ['without a blank, with CRLF', 'data:a\r\n\r\n', ['a']],
  ['comments and an event without data', ': beat\n\nevent: x\n\ndata: a\n\n', ['a']],
  ['what has no end yet', 'data: a\n\ndata: b\n', ['a']],
])('%s', (_what, text, data) => {
  expect(read([Buffer.from(text)])).toEqual(data);
});

test('can be split anywhere, including inside a character', () => {
  const text = Buffer.from('event: status\ndata: {"name":"é → 🙂"}\n\ndata: b\n\n');
  fc.assert(
    fc.property(fc.array(fc.nat(text.length), { maxLength: 8 }), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), text.length];
      const parts = at.slice(1).map((end, index) => text.subarray(at[index], end));
      expect(read(parts)).toEqual(['{"name":"é → 🙂"}', 'b']);
    }),
  );
});
