import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LineSelection, lineSplitter, selectLines } from '../../src/os/log-lines.ts';
import { runs } from '../helpers/rounds.ts';

test('however the bytes of a text arrive, its lines are the same', () => {
  const text = fc.array(fc.constantFrom('a', 'ü', '😀', '\n', '\r\n', '\r', ' ')).map((signs) => signs.join(''));
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }), (whole, sizes) => {
      const bytes = Buffer.from(whole);
      const splitter = lineSplitter();
      const lines: string[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1;
        lines.push(...splitter.add(bytes.subarray(at, at + size)));
        at += size;
      }
      lines.push(...splitter.rest());
      const expected = whole.split('\n').map((line) => line.replace(/\r$/, ''));
      if (whole === '' || whole.endsWith('\n')) expected.pop();
      expect(lines).toEqual(expected);
    }),
    { numRuns: runs(500) },
  );
});

test('a line that never ends comes in pieces, and is not kept whole', () => {
  const splitter = lineSplitter(4);
  expect(splitter.add(Buffer.from('abcdefghij'))).toEqual(['abcd', 'efgh']);
  expect(splitter.add(Buffer.from('k\nl\n\n'))).toEqual(['ijk', 'l', '']);
  expect(splitter.rest()).toEqual([]);
});

async function* each(lines: readonly string[]) {
  yield* lines;
}

test('lines are selected by number and by time; one without a time belongs to the one before', async () => {
  const lines = ['5 a', ' of a', '7 b', '6 c', ' of c', '8 d'];
  const timeOf = (line: string) => (/^\d/.test(line) ? Number(line[0]) : undefined);
  const since = (time: number) => ({ since: { time, timeOf } });
  const cases: [LineSelection, string[], boolean][] = [
    [{}, lines, false],
    [{ last: 2 }, [' of c', '8 d'], true],
    [{ last: 6 }, lines, true],
    [{ last: 7 }, lines, false],
    [{ last: 0 }, [], true],
    [since(0), lines, false],
    [since(6), ['7 b', '6 c', ' of c', '8 d'], true],
    [since(8), ['8 d'], true],
    [since(9), [], true],
    [{ ...since(6), last: 2 }, [' of c', '8 d'], true],
  ];
  for (const [selection, expected, complete] of cases) {
    expect(await selectLines(each(lines), selection), JSON.stringify(selection)).toEqual({ lines: expected, complete });
  }
  const many = Array.from({ length: 10_000 }, (_, at) => String(at));
  expect((await selectLines(each(many), { last: 3 })).lines).toEqual(['9997', '9998', '9999']);
});
