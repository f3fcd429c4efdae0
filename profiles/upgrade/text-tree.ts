import type { JsonValue } from '../../src/json.ts';

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
