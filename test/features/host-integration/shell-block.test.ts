import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withBlock, withoutBlock } from '../../../src/features/host-integration/shell-block.ts';
import { OWN_IDENTITY } from '../../../src/product.ts';
import { runs } from '../../helpers/rounds.ts';

const MARKS = { start: OWN_IDENTITY.blockStart, end: OWN_IDENTITY.blockEnd };
const LINES = ['export PATH="/x/bin:$PATH"'];
const BLOCK = `${MARKS.start}\n${LINES[0]}\n${MARKS.end}\n`;

/** Any bytes, with more line ends than chance would produce. */
const TEXT = fc
  .array(
    fc.oneof(fc.constant('\n'), fc.constant('\r\n'), fc.string({ unit: 'binary-ascii' }), fc.constant('export A=1\n')),
  )
  .map((parts) => parts.join(''));

describe('the block', () => {
  test.each([
    ['an empty file', '', BLOCK],
    ['a file with a line', 'a\n', `a\n${BLOCK}`],
    ['a file that ends in blank lines', 'a\n\n\n', `a\n\n\n${BLOCK}`],
    ['a file of Windows', 'a\r\n', `a\r\n${BLOCK}`],
  ])('is appended to %s, and nothing else changes', (_, before, after) => {
    expect(withBlock(before, LINES, MARKS)).toBe(after);
    expect(withoutBlock(after, MARKS)).toBe(before);
  });

  test('adds a missing final newline, and removes it again', () => {
    const text = withBlock('no end', LINES, MARKS);
    expect(text.startsWith(`no end\n${MARKS.start}\n`)).toBe(true);
    expect(withoutBlock(text, MARKS)).toBe('no end');
    expect(withoutBlock(`${text}added later\n`, MARKS)).toBe('no end\nadded later\n');
  });

  test('is removed with the file that was created for it, but leaves a file that was empty before', () => {
    expect(withoutBlock(withBlock(undefined, LINES, MARKS), MARKS)).toBeUndefined();
    expect(withoutBlock(withBlock('', LINES, MARKS), MARKS)).toBe('');
    const added = `${withBlock(undefined, LINES, MARKS)}mine\n`;
    expect(withoutBlock(added, MARKS)).toBe('mine\n');
  });

  test('stays where the user has moved it, between other lines', () => {
    const moved = `a\n${BLOCK}b\n`;
    expect(withBlock(moved, LINES, MARKS)).toBe(moved);
    const changed = withBlock(moved, ['export PATH="/y:$PATH"'], MARKS);
    expect(changed).toBe(`a\n${MARKS.start}\nexport PATH="/y:$PATH"\n${MARKS.end}\nb\n`);
    expect(withoutBlock(changed, MARKS)).toBe('a\nb\n');
  });

  test('keeps its note about the file when its lines change', () => {
    const created = withBlock(undefined, LINES, MARKS);
    expect(withoutBlock(withBlock(created, ['other'], MARKS), MARKS)).toBeUndefined();
  });

  test('is found with Windows line ends and blanks after the markers', () => {
    const edited = `a\r\n${BLOCK.replaceAll('\n', ' \r\n')}b\r\n`;
    expect(withoutBlock(edited, MARKS)).toBe('a\r\nb\r\n');
    expect(withBlock(edited, LINES, MARKS)).toBe(edited);
  });

  test('becomes one again when it was copied', () => {
    expect(withBlock(`${BLOCK}a\n${BLOCK}b\n`, LINES, MARKS)).toBe(`${BLOCK}a\nb\n`);
    expect(withoutBlock(`${BLOCK}a\n${BLOCK}b\n`, MARKS)).toBe('a\nb\n');
  });

  test.each([
    ['has no end', `a\n${MARKS.start}\nb\n`],
    ['starts twice', `${MARKS.start}\n${MARKS.start}\n${MARKS.end}\n`],
    ['ends without a start', `a\n${MARKS.end}\n`],
  ])('that %s is left to the user', (what, text) => {
    expect(() => withBlock(text, LINES, MARKS)).toThrow(what);
    expect(() => withoutBlock(text, MARKS)).toThrow(what);
  });

  test('of another application is not ours', () => {
    const other = BLOCK.replaceAll('RDCTL', 'RANCHER DESKTOP');
    expect(withoutBlock(other, MARKS)).toBe(other);
    expect(withBlock(other, LINES, MARKS)).toBe(other + BLOCK);
  });
});

test('inserting and removing it restores any file byte for byte', () => {
  fc.assert(
    fc.property(TEXT, (text) => {
      const once = withBlock(text, LINES, MARKS);
      expect(withBlock(once, LINES, MARKS)).toBe(once);
      expect(withoutBlock(once, MARKS)).toBe(text);
      expect(withoutBlock(withBlock(once, ['another'], MARKS), MARKS)).toBe(text);
    }),
    { numRuns: runs(2000) },
  );
});

test('keeps whole lines that are appended after it', () => {
  fc.assert(
    fc.property(TEXT, TEXT, (text, added) => {
      const rest = withoutBlock(withBlock(text, LINES, MARKS) + added, MARKS);
      const between = text !== '' && !text.endsWith('\n') && added !== '' ? '\n' : '';
      expect(rest).toBe(text + between + added);
    }),
    { numRuns: runs(1000) },
  );
});
