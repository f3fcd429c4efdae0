import { Lexer } from 'yaml';
import { isObject, type JsonValue } from '../../src/json.ts';
import { escapedHidden, hasHidden } from '../../src/settings/printable.ts';

/** How a text is written: plain where YAML allows it, or between the given quotes. */
export type Quotes = '' | '"' | "'";

/** Read alike by YAML 1.1 and 1.2, also between brackets. */
const PLAIN = /^[A-Za-z][\w./-]*$/;
const WORDS = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** The quotes around a scalar as it is written. */
export function quotesOf(written: string): Quotes {
  return written.startsWith('"') ? '"' : written.startsWith("'") ? "'" : '';
}

/** A text as YAML on one line; with `"` it is JSON too. */
export function quoted(text: string, quotes: Quotes): string {
  if (quotes === '' && PLAIN.test(text) && !WORDS.test(text)) return text;
  if (quotes === "'" && !text.includes("'") && !hasHidden(text)) return `'${text}'`;
  return escapedHidden(JSON.stringify(text));
}

/** A value on one line, between brackets where it has members. */
export function flowText(value: JsonValue, quotes: Quotes): string {
  if (typeof value === 'string') return quoted(value, quotes);
  if (Array.isArray(value)) return `[${value.map((item) => flowText(item, quotes)).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, each]) => `${quoted(name, quotes)}: ${flowText(each, quotes)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

/** The comments of a YAML text in their order, each from its `#` on. */
export function commentsIn(text: string): string[] {
  const comments: string[] = [];
  if (!text.includes('#')) return comments;
  let scalar = false;
  for (const lexeme of new Lexer().lex(text)) {
    if (!scalar && lexeme.startsWith('#')) comments.push(lexeme.trimEnd());
    // The mark before a scalar, whose text may begin with the sign of a comment.
    scalar = lexeme === '\u001f';
  }
  return comments;
}
