import { Lexer } from 'yaml';
import { isObject, type JsonValue } from '../../../src/json.ts';
import { escapedHidden, hasHidden } from '../../../src/settings/printable.ts';

/**
 * A YAML or JSON document taken apart so that every character of it is in exactly one place: rendering what was read gives the
 * same text, and an edit touches nothing but its own lines.
 */
export interface Collection {
  /** Members on lines of their own by indentation, or in brackets. */
  style: 'block' | 'flow';
  /** Members have no names. */
  list: boolean;
  /** Where members begin, counted from 0; of brackets on one line -1. */
  column: number;
  /** Where a line between brackets would begin that had to be made. */
  hanging: number;
  /** Brackets in brackets. */
  nested?: true;
  /** The bracket that opens; empty in block style. */
  open: string;
  entries: Entry[];
  /** What follows the last member: comment lines, or space and the closing bracket. */
  end: string;
  /** A comma follows the last member as well. */
  trailingComma: boolean;
}

/** A member of a mapping or a list. The texts follow each other in this order. */
export interface Entry {
  /** Name in the mapping; the position in a list as it was read. */
  name: string;
  /** Blank and comment lines above. */
  lead: string;
  /** Indentation and marks before the name. */
  open: string;
  /** The name as it is written. */
  key: string;
  /** From behind the name to the value: the colon, anchors and tags, comments, line ends. */
  colon: string;
  /** The value as it is written, without the end of its last line. */
  body: string | Collection;
  /** The rest of the last line, or what stands before the comma. */
  tail: string;
  /** What stands behind the comma on the same line. */
  post: string;
  /** What the value means; absent for one that was made by an edit. */
  value?: JsonValue;
  /** Made by an edit. */
  made?: true;
}

/** The text of a tree. */
export function textOf(collection: Collection): string {
  const { style, open, entries, end, trailingComma } = collection;
  const last = entries.length - 1;
  const members = entries.map((entry, index) => {
    const comma = style === 'flow' && (index < last || trailingComma) ? ',' : '';
    return `${entryText(entry)}${comma}${entry.post}`;
  });
  return `${open}${members.join('')}${end}`;
}

function entryText({ lead, open, key, colon, body, tail }: Entry): string {
  return `${lead}${open}${key}${colon}${bodyText(body)}${tail}`;
}

export function bodyText(body: string | Collection): string {
  return typeof body === 'string' ? body : textOf(body);
}

/** The member with this name. */
export function memberOf(collection: Collection, name: string): Entry | undefined {
  return collection.entries.find((entry) => entry.name === name);
}

/** How a document is laid out, where an edit has to write something new. */
export interface Layout {
  /** The end of a line. */
  eol: string;
  /** Columns per level. */
  step: number;
  /** What one column of indentation is: a space, or a tab between brackets. */
  pad: ' ' | '\t';
}

/** The indentation of a line that begins in a column. */
export function indentation({ pad }: Layout, columns: number): string {
  return pad.repeat(columns);
}

/** How far the lines between brackets have to move to stand deeper than the column of a name in block style. */
export function shallow(text: string, column: number, { step }: Layout): number {
  let least = Number.POSITIVE_INFINITY;
  for (const line of text.split('\n').slice(1)) {
    if (line.trim() !== '') least = Math.min(least, line.search(/[^ ]/));
  }
  return least > column ? 0 : column + step - least;
}

/** The lines of a value moved to the side; the first stands behind its name unless it is `whole`. */
export function shifted(text: string, by: number, whole: boolean, layout: Layout): string {
  if (by === 0) return text;
  return text
    .split('\n')
    .map((line, index) => {
      if ((index === 0 && !whole) || line.trim() === '') return line;
      return by > 0 ? `${indentation(layout, by)}${line}` : line.replace(new RegExp(`^${layout.pad}{0,${-by}}`), '');
    })
    .join('\n');
}

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
    // The mark before a scalar, whose text may begin with the character of a comment.
    scalar = lexeme === '\u001f';
  }
  return comments;
}
