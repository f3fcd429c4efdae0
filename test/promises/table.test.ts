import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { readTable, testsNamed } from './table.ts';
import { hasTest } from './titles.ts';

function table(text: string): ReturnType<typeof readTable> {
  const file = join(temporaryDirectory(), 'x.yaml');
  writeFileSync(file, text);
  return readTable(file);
}

test('an entry names tests by condition, or says why it promises nothing', () => {
  const entries = table(`
- text: A
  once: a › b
  kill: [c › d, e › f]
  fullDisk: { not: it writes nothing }
- pattern: ^B
  says: limit
`);
  expect(entries.map(testsNamed)).toEqual([['a › b', 'c › d', 'e › f'], []]);
});

test.each([
  ['- once: a › b', 'needs a text'],
  ['- text: A', 'needs either'],
  ['- { text: A, says: limit, once: a › b }', 'needs either'],
  ['- { text: A, says: true }', 'says one of'],
  ['- { text: A, says: boast }', 'says one of'],
  ['- { text: A, twice: a › b }', 'twice is no condition'],
  ['- { text: A, once: [] }', 'a condition names tests'],
  ['- { text: A, once: { not: it cannot } }', 'needs a test'],
])('%s is not an entry', (text, message) => {
  expect(() => table(text)).toThrow(message);
});

test('a test is found by a part of its title, in its own file only', () => {
  const file = 'test/promises/table.test.ts';
  expect(hasTest(`${file} › is found by a part`)).toBe(true);
  expect(hasTest(`${file} › %s is not an entry`)).toBe(true);
  expect(hasTest('test/promises/sentences.test.ts › is found by a part')).toBe(false);
  expect(hasTest('test/promises/gone.test.ts › is found by a part')).toBe(false);
  expect(hasTest(`${file} › `)).toBe(false);
  expect(hasTest(file)).toBe(false);
});
