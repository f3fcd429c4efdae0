import { expect, test } from 'vitest';
import { patternWarnings } from '../../src/plan/pattern-warnings.ts';

const warningsOf = (patterns: string[]) =>
  patternWarnings({ version: 19, containerEngine: { allowedImages: { patterns } } });

test('patterns that can match nothing are named, each once and with the reason', () => {
  expect(warningsOf(['busybox', 'foo/b[ao]r', '', 'foo/b[ao]r', '*'])).toEqual([
    expect.stringMatching(
      /^The pattern "foo\/b\[ao\]r" in "containerEngine\.allowedImages\.patterns" matches nothing: .*\*\.$/,
    ),
    'The pattern "" in "containerEngine.allowedImages.patterns" matches nothing: it is blank.',
  ]);
});

test('settings without patterns have none', () => {
  expect(patternWarnings({ version: 19 })).toEqual([]);
  expect(warningsOf([])).toEqual([]);
});
