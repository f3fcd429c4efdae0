import { expect, test } from 'vitest';
import { chooseTag } from '../../../src/features/extensions/installer.ts';

test.each([
  [['1.0.0', '1.10.0', '1.9.0'], '1.10.0'],
  [['v1.0.0', 'v.1.1.0', '1.0.5'], 'v.1.1.0'],
  [['latest', '0.0.1', '99'], '0.0.1'],
  [['1.0.0', '2.0.0-rc.1'], '2.0.0-rc.1'],
  [['2.0.0-rc.1', '2.0.0'], '2.0.0'],
  [['build-9', 'build-10', 'latest'], 'build-10'],
  [['v2', 'v1'], 'v2'],
  [['latest', 'edge'], 'latest'],
  [['edge'], undefined],
  [[], undefined],
])('of %j it picks %s', (tags, expected) => {
  expect(chooseTag(tags)).toBe(expected);
  expect(chooseTag([...tags].reverse())).toBe(expected);
});
