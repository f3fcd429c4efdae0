import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { unifiedDiff } from '../../profiles/document/text-diff.ts';
import { runs } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NAMES = { before: 'a', after: 'b' };

test('equal texts have no differences', () => {
  expect(unifiedDiff('a\n', 'a\n', NAMES)).toBe('');
});

test('changes have context lines, and nearby ones are merged', () => {
  const before = Array.from({ length: 20 }, (_, index) => `${index}\n`).join('');
  const after = before.replace('5\n', 'five\n').replace('9\n', '').replace('19\n', 'end');
  expect(unifiedDiff(before, after, NAMES)).toBe(
    [
      '--- a\n+++ b\n@@ -3,11 +3,10 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n 10\n 11\n 12\n',
      '@@ -17,4 +16,4 @@\n 16\n 17\n 18\n-19\n+end\n\\ No newline at end of file\n',
    ].join(''),
  );
});

test('everything is added, or removed', () => {
  expect(unifiedDiff('', 'a\n', NAMES)).toBe('--- a\n+++ b\n@@ -0,0 +1,1 @@\n+a\n');
  expect(unifiedDiff('a\n', '', NAMES)).toBe('--- a\n+++ b\n@@ -1,1 +0,0 @@\n-a\n');
});

test('the edit script is a shortest one', () => {
  const letters = fc.array(fc.constantFrom('x\n', 'y\n', 'z\n'), { maxLength: 12 });
  fc.assert(
    fc.property(letters, letters, (a, b) => {
      const changes = unifiedDiff(a.join(''), b.join(''), NAMES)
        .split('\n')
        .slice(2)
        .filter((line) => /^[-+]/.test(line));
      expect(changes).toHaveLength(a.length + b.length - 2 * longestCommon(a, b));
    }),
  );
});

test('patch(1) turns the old text into the new one', ({ skip }) => {
  if (spawnSync('patch', ['--version']).status !== 0) {
    const message = 'there is no patch; fix: apt-get install patch';
    if (process.env.RDCTL_REQUIRE_REAL === '1') throw new Error(message);
    process.stderr.write(`\nSKIPPED: ${message}\n`);
    skip();
  }
  const text = fc.array(fc.constantFrom('a\n', 'b\n', '\n', 'käse\n', '-- x\n', '++ y\n'), { maxLength: 25 });
  fc.assert(
    fc.property(text, text, fc.boolean(), (a, b, open) => {
      const [before, after] = [a.join(''), `${b.join('')}${open ? 'last' : ''}`];
      fc.pre(before !== after && before !== '' && after !== '');
      const cwd = temporaryDirectory();
      writeFileSync(join(cwd, 'file'), before);
      const { status, stdout } = spawnSync('patch', ['-s', 'file'], { cwd, input: unifiedDiff(before, after, NAMES) });
      expect(status, String(stdout)).toBe(0);
      expect(readFileSync(join(cwd, 'file'), 'utf8')).toBe(after);
    }),
    { numRuns: runs(60) },
  );
});

test('two long texts without a common line are shown completely', () => {
  const many = (word: string) => Array.from({ length: 3000 }, (_, index) => `${word}${index}\n`).join('');
  expect(unifiedDiff(many('a'), many('b'), NAMES).split('\n')).toHaveLength(6004);
});

function longestCommon(a: readonly string[], b: readonly string[]): number {
  let row = Array.from({ length: b.length + 1 }, () => 0);
  for (const each of a) {
    const next = [0];
    for (const [index, other] of b.entries()) {
      next.push(each === other ? (row[index] ?? 0) + 1 : Math.max(next[index] ?? 0, row[index + 1] ?? 0));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
