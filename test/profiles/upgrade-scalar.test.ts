import { expect, test } from 'vitest';
import { quoteText } from '../../profiles/document/upgrade/document-tree.ts';
import { jsonText } from '../../profiles/document/write.ts';

test.each(['\u007f', '\u009b', '\u2028', '\u202e', '\u2069', '\ufeff', '\ufffe', '\uffff'])(
  '%j is escaped as a code point in any quotes, as in a rewritten profile',
  (sign) => {
    const written = `"a\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}"`;
    for (const quotes of ['', '"', "'"] as const) expect(quoteText(`a${sign}`, quotes)).toBe(written);
    expect(jsonText(`a${sign}`)).toBe(written);
  },
);

test('quotes are kept when they can hold the text', () => {
  expect(quoteText('a b', "'")).toBe("'a b'");
  expect(quoteText("it's", "'")).toBe('"it\'s"');
  expect(quoteText('a', '')).toBe('a');
});
