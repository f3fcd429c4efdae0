import fc from 'fast-check';
import { expect, test } from 'vitest';
import { differenceText } from '../../cli/views/difference-text.ts';

test.each([
  ['values as a whole', 4, 6, '4 → 6', []],
  ['a secret as such', { sensitive: true }, 'x', '(sensitive) → x', []],
  ['nothing before', undefined, ['a', 'b', 'c'], '(nothing) → [a, b, c]', []],
  ['nothing after', ['a', 'b', 'c'], undefined, '[a, b, c] → (removed)', []],
  ['short lists side by side', ['a', 'b'], ['a', 'c'], '[a, b] → [a, c]', []],
  ['lists without a common entry', ['a', 'b', 'c'], ['d'], '[a, b, c] → [d]', []],
  ['one added', ['a', 'b'], ['a', 'x y', 'b'], '1 added, 2 unchanged', ['+ "x y"']],
  ['one changed', ['a', 'b', 'c'], ['a', 'd', 'c'], '1 removed, 1 added, 2 unchanged', ['- b', '+ d']],
  ['listed twice before', ['a', 'a', 'b'], ['a', 'b'], '1 removed, 2 unchanged', ['- a']],
  ['only the order', ['a', 'b', 'c'], ['c', 'b', 'a'], 'another order: [c, b, a]', []],
  [
    'control characters',
    ['a', 'b', 'c'],
    ['a', 'b', '\u001b[2J'],
    '1 removed, 1 added, 2 unchanged',
    ['- c', '+ "\\u001b[2J"'],
  ],
] as const)('%s', (_, before, after, brief, entries) => {
  const [old, now] = [before, after].map((value) => structuredClone(value) as Parameters<typeof differenceText>[0]);
  expect(differenceText(old, now)).toEqual({ brief, entries });
});

test('the entries of a difference make the one list of the other', () => {
  const list = fc.array(fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e'), { maxLength: 12 });
  fc.assert(
    fc.property(list, list, (before, after) => {
      const { entries } = differenceText(before, after);
      if (entries.length === 0) return;
      const left = [...before];
      for (const entry of entries) {
        const value = entry.slice(2);
        if (entry.startsWith('+')) left.push(value);
        else left.splice(left.indexOf(value), 1);
      }
      expect(left.sort()).toEqual([...after].sort());
    }),
  );
});
