import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonProblem } from '../../src/settings/json-problem.ts';
import { runs } from '../helpers/rounds.ts';

test.each<[string, number, number, string]>([
  ['', 1, 1, 'the text ends here: a value is missing or invalid'],
  ['{\n  "a": true,\n}', 3, 1, 'a "," comes before the "}"'],
  ['[1, ]', 1, 5, 'a "," comes before the "]"'],
  ['{\n  // why\n  "a": 1\n}', 2, 3, 'comments are not allowed in JSON'],
  ['{"a": 1 # why\n}', 1, 9, 'comments are not allowed in JSON'],
  ['{"a": 1\n "b": 2}', 2, 2, 'a "," or a "}" is missing'],
  ['{"a": [1, 2}', 1, 12, 'a "," or a "]" is missing'],
  ['{"a": [1', 1, 9, 'the text ends here: a "," or a "]" is missing'],
  ["{'a': 1}", 1, 2, 'a key in double quotation marks is missing'],
  ['{"a" 1}', 1, 6, 'a ":" is missing'],
  ['{"a": yes}', 1, 7, 'a value is missing or invalid'],
  ['{"a": 01}', 1, 7, 'a value is missing or invalid'],
  ['{"a": NaN}', 1, 7, 'a value is missing or invalid'],
  ['{"a": "hush', 1, 7, 'a string is not closed: a quotation mark is missing'],
  ['{"a": "hu\nsh"}', 1, 10, 'a string has a line break or a control character in it'],
  ['{"a": "C:\\temp\\x"}', 1, 15, 'invalid escape sequence'],
  ['{} {}', 1, 4, 'unexpected content after the end'],
  ['{"a": {"b": 1, "c": [{"b": 1}],\n "\\u0062": 2}}', 2, 2, 'the key "b" appears twice in one object'],
])('%j', (text, line, column, message) => {
  expect(jsonProblem(text)).toMatchObject({ line, column, message });
});

test('finds a problem exactly in what a parser rejects', () => {
  const pieces = fc.constantFrom(
    ...'{}[],:"\\ \n\t-+.019eEtrufalsn/#b'.split(''),
    '"a"',
    '"b":',
    'true',
    'null',
    '\\u00e9',
  );
  const damaged = fc
    .tuple(fc.json(), fc.nat(), fc.nat({ max: 2 }), fc.array(pieces, { maxLength: 3 }))
    .map(([text, at, gone, more]) => {
      const from = at % (text.length + 1);
      return text.slice(0, from) + more.join('') + text.slice(from + gone);
    });
  fc.assert(
    fc.property(
      fc.oneof(
        damaged,
        fc.array(pieces, { maxLength: 12 }).map((each) => each.join('')),
      ),
      (text) => {
        const problem = jsonProblem(text);
        if (problem?.message.includes('stands twice')) return;
        expect(problem === undefined).toBe(parses(text));
      },
    ),
    { numRuns: runs(5000) },
  );
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('handles long and deep texts', () => {
  const long = `{"a": "${'\\"\\\\x'.repeat(300_000)}", "n": ${'1'.repeat(1_000_000)}}`;
  expect(jsonProblem(long)).toBeUndefined();
  expect(jsonProblem('['.repeat(200_000))).toMatchObject({ line: 1, column: 200_001 });
});
