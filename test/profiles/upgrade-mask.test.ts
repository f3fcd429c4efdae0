import { expect, test } from 'vitest';
import { withoutSecrets, withReplacements } from '../../profiles/document/upgrade/upgrade.ts';

test('secrets of all lengths are masked, in any order', () => {
  const text = 'a: x, b: a long secret, c: yz.';
  const pieces = ['x', 'a long secret', 'yz'].map((secret) => ({
    offset: text.indexOf(secret),
    length: secret.length,
    text: '********',
  }));
  for (const order of [pieces, pieces.toReversed(), [1, 0, 2].flatMap((index) => pieces[index] ?? [])]) {
    expect(withReplacements(text, order)).toBe('a: ********, b: ********, c: ********.');
  }
  expect(withReplacements(text, [])).toBe(text);
});

test('a secret is masked everywhere, unless it is as short as a word', () => {
  expect(withoutSecrets('hunter2 and proxy: hunter2, word', ['hunter2', 'word'])).toBe(
    '******** and proxy: ********, word',
  );
});
