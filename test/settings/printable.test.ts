import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { style } from '../../cli/views/text.ts';
import {
  escapeHidden,
  escapeInLines,
  forTerminal,
  hasHidden,
  quoteName,
  stripHidden,
} from '../../src/settings/printable.ts';

const HIDDEN: readonly string[] = [
  ...['\0', '\u0007', '\u001b', '\u007f', '\u009b', '\u00ad', '\u061c', '\u200b', '\u200e', '\u200f'],
  ...['\u2028', '\u2029', '\u202a', '\u202e', '\u2060', '\u2066', '\u2069', '\ufeff', '\ufffe', '\uffff'],
];

const HIDDEN_CATEGORIES = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffe\uffff]/u;

test.each(HIDDEN.map((sign) => [`U+${sign.charCodeAt(0).toString(16).padStart(4, '0')}`, sign]))(
  '%s is escaped',
  (name, sign) => {
    const written = `a\\u${name.slice(2)}b`;
    const text = `a${sign}b`;
    expect(hasHidden(text)).toBe(true);
    expect(escapeHidden(text)).toBe(written);
    expect(escapeInLines(text)).toBe(written);
    expect(stripHidden(`a${sign}${sign}b`)).toBe('a b');
    expect(quoteName(text)).toMatch(/^"a\\\w+b"$/);
  },
);

test('letters of all scripts are printed unchanged', () => {
  for (const text of ['añ 日本 مرحبا', '👍🏽', '\ufffd', '🏴\u{e0067}\u{e007f}']) {
    expect([escapeHidden(text), stripHidden(text), hasHidden(text)]).toEqual([text, text, false]);
  }
});

test('line breaks are kept in multi-line text, but not a lone carriage return', () => {
  expect(escapeInLines('a\r\nb\n\tc\rd\r\r\n')).toBe('a\r\nb\n\tc\\u000dd\\u000d\r\n');
  expect(escapeHidden('a\nb\t')).toBe('a\\u000ab\\u0009');
});

describe('a name in a message', () => {
  test('is short, and never ends with half a character', () => {
    expect(quoteName('x'.repeat(40))).toBe(`"${'x'.repeat(40)}"`);
    expect(quoteName('x'.repeat(41))).toBe(`"${'x'.repeat(40)}…"`);
    expect(quoteName('👍'.repeat(300_000))).toBe(`"${'👍'.repeat(40)}…"`);
    expect(quoteName(`a${'👍'.repeat(300)}`)).toBe(`"a${'👍'.repeat(39)}…"`);
  });

  test('is JSON that cannot be broken out of', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const quoted = quoteName(text);
        expect(hasHidden(quoted)).toBe(false);
        expect(quoted.length).toBeLessThanOrEqual(40 * 12 + 3);
        expect(text.startsWith(String(JSON.parse(quoted)).replace(/…$/, ''))).toBe(true);
      }),
    );
  });
});

describe('on a terminal', () => {
  test.each([
    ['styles', `${style(true).bold('a')} ${style(true).dim(style(true).good('b'))} ${style(true).warn('c')}`],
    ['lines, tabs and letters', 'a\r\n\tx 日本\n'],
    ['a status line', '\r\u001b[2Kstarting …'],
    ['a redrawn screen', '\u001b[Ha\u001b[K\nb\u001b[K\n\u001b[J'],
  ])('what we write ourselves is kept: %s', (_what, text) => expect(forTerminal(text)).toBe(text));

  test.each([
    ['a\u001b[2Jb', 'a\\u001b[2Jb'],
    ['a\r\u001b[2Kb', 'a\\u000d\\u001b[2Kb'],
    ['a\u001b[Hb\u001b[Jc\u001b[Kd', 'a\\u001b[Hb\\u001b[Jc\\u001b[Kd'],
    ['a\u001b]0;title\u0007b', 'a\\u001b]0;title\\u0007b'],
    ['a\u001b[8mhidden\u001b[31;8m', 'a\\u001b[8mhidden\\u001b[31;8m'],
    ['a\rb\bc\u000bd\fe\0', 'a\\u000db\\u0008c\\u000bd\\u000ce\\u0000'],
  ])('what others write is escaped: %j', (text, shown) => expect(forTerminal(text)).toBe(shown));

  test.each(HIDDEN)('%j is escaped wherever it is', (sign) => {
    const shown = forTerminal(`${sign}a${sign}\n${sign}`);
    expect(shown.replaceAll('\n', '')).not.toMatch(HIDDEN_CATEGORIES);
  });
});

test('on a terminal JSON stays equivalent', () => {
  const document = { name: 'a\u009b31m\u202eb\u200b\u2028', note: '\u001b]0;x\u0007' };
  const text = forTerminal(JSON.stringify(document));
  expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
  expect(JSON.parse(text)).toEqual(document);
});

test('hidden are the characters of these categories of Unicode below U+10000, and no others', () => {
  const signs = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code));
  expect(signs.filter(hasHidden)).toEqual(signs.filter((sign) => HIDDEN_CATEGORIES.test(sign)));
  expect(hasHidden('\u{e0001}')).toBe(false);
});
