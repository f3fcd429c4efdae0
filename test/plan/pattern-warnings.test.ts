import { expect, test } from 'vitest';
import { patternWarnings } from '../../src/allowed-images/pattern.ts';

import { planFor, requestFor } from './planning.ts';

const warningsOf = (patterns: string[]) =>
  patternWarnings({ version: 19, containerEngine: { allowedImages: { patterns } } });

test('patterns that can match nothing are reported once each, with the reason', () => {
  expect(warningsOf(['busybox', 'foo/b[ao]r', '', 'foo/b[ao]r', '*'])).toEqual([
    expect.stringMatching(
      /^The pattern "foo\/b\[ao\]r" in "containerEngine\.allowedImages\.patterns" matches nothing: .*\*\.$/,
    ),
    'The pattern "" in "containerEngine.allowedImages.patterns" matches nothing: it is blank.',
  ]);
});

test('settings without patterns have no warnings', () => {
  expect(patternWarnings({ version: 19 })).toEqual([]);
  expect(warningsOf([])).toEqual([]);
});

test('an extension whose image is not allowed is reported', async () => {
  const allowed = { 'containerEngine.allowedImages.enabled': true, 'containerEngine.allowedImages.patterns': ['a/b'] };
  const request = requestFor({ 'application.extensions.installed': { 'a/b': '1', 'a/c': '1' } });
  const text =
    'The extension a/c:1 is not among the allowed images: it can be installed only where moby has it already.';
  const denied = (warnings: readonly string[]) => warnings.filter((each) => each.includes('allowed images'));
  expect(denied((await planFor(allowed, request)).warnings)).toEqual([text]);
  expect(denied((await planFor({}, request)).warnings)).toEqual([]);
});
