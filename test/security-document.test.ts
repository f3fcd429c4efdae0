import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const document = readFileSync('docs/security.md', 'utf8');

test('every row of the security document names a test that exists', () => {
  const promises = document.split('\n').filter((line) => line.startsWith('| ') && line.split('|').length === 5);
  const rows = promises.filter((line) => !line.startsWith('| Guarded | By | Test |'));
  expect(rows.length).toBeGreaterThan(25);
  expect(rows.filter((line) => !/`test\/[^`]+\.test\.ts`/.test(line))).toEqual([]);
  const named = [...document.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, path = '']) => path);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});
