import type { JsonValue } from '../../../src/json.ts';
import {
  bodyText,
  type Collection,
  commentsIn,
  type Entry,
  flowText,
  indentation,
  type Layout,
  type Quotes,
  quoted,
  quotesOf,
  shallow,
  shifted,
} from './text-tree.ts';

/** A member that was removed, freed of its place. */
export interface Cut {
  entry: Entry;
  /** Comments that go with it, each from its `#` on: those above it and those that have no place of their own elsewhere. */
  comments: string[];
  /** The comment behind it on its line. */
  trailing: string | undefined;
  quotes: Quotes;
  /** Anchor and tag of the value, as written. */
  marks: string;
  /** Where it began; -1 between brackets on one line. */
  column: number;
  /** Its place among the members around it. */
  index: number;
  /** A space follows the colon. */
  spaced: boolean;
}

/** Takes a member out and gives its comments: it and they are in the document no more. */
export function drop(collection: Collection, entry: Entry, layout: Layout): string[] {
  const comments = commentsOf(cut(collection, entry));
  if (collection.style === 'flow') settle(collection, layout);
  return comments;
}

/** Takes a member out. Comments right above it and behind it go with it, what is above a blank line stays. */
export function cut(collection: Collection, entry: Entry): Cut {
  const { entries, style } = collection;
  const index = entries.indexOf(entry);
  entries.splice(index, 1);
  const [staying, attached] = style === 'block' ? splitLead(entry.lead) : ['', entry.lead];
  const next = entries[index];
  if (style === 'block') {
    if (next) next.lead = joined(staying, next.lead, index === 0);
    else collection.end = joined(staying, collection.end, true);
  } else if (index === 0 && next && !next.lead.includes('#')) {
    next.lead = /^\s*$/.test(entry.lead) ? entry.lead : next.lead;
  }
  const [line = '', ...below] = entry.tail.split(/(?<=\n)/);
  const behind = commentsIn(style === 'block' ? line : `${entry.tail}${entry.post}`);
  const inline = typeof entry.body === 'string' || entry.body.style === 'flow';
  return {
    entry,
    comments: [
      ...commentsIn(attached),
      ...commentsIn(entry.colon),
      ...(style === 'block' ? commentsIn(below.join('')) : []),
      ...behind.slice(inline ? 1 : 0),
    ],
    trailing: inline ? behind[0] : undefined,
    index,
    quotes: quotesOf(entry.key),
    marks: marksOf(entry.colon),
    column: collection.column,
    spaced: style === 'block' || /[ \t]$/.test(entry.colon),
  };
}

/** Puts a member under a new name behind the others, or in the place `at`. */
export function insert(collection: Collection, moved: Cut, name: string, layout: Layout, at?: number): void {
  const { entry, quotes } = moved;
  const made: Entry = {
    ...entry,
    name,
    lead: '',
    open: '',
    key: quoted(name, quotes),
    colon: `:${moved.spaced ? ' ' : ''}${moved.marks}`,
    tail: '',
    post: '',
    made: true,
  };
  if (collection.style === 'block') placeInBlock(collection, moved, made, layout);
  else placeInFlow(collection, moved, made, layout);
  collection.entries.splice(at ?? collection.entries.length, 0, made);
  if (collection.style === 'flow') settle(collection, layout);
}

/** Comments right above a member. */
export function comment(collection: Collection, entry: Entry, comments: readonly string[], layout: Layout): void {
  if (comments.length === 0) return;
  if (collection.style === 'flow') {
    const pad = `${layout.eol}${indentation(layout, inside(collection))}`;
    const text = comments.map((each) => `${pad}${each}`).join('');
    entry.lead = `${text}${entry.lead.includes('\n') ? entry.lead : pad}`;
    settle(collection, layout);
    return;
  }
  const lines = comments.map((each) => `${' '.repeat(collection.column)}${each}${layout.eol}`).join('');
  const [staying, attached] = splitLead(entry.lead);
  entry.lead = `${staying}${lines}${attached}`;
}

/** Writes another value in the place of one; comments in the old one become lines above it. */
export function setBody(collection: Collection, entry: Entry, value: JsonValue, layout: Layout): void {
  const written = typeof entry.body === 'string' ? entry.body : undefined;
  const strings = collection.style === 'flow' && entry.key !== '' ? quotesOf(entry.key) : '';
  const comments = [...commentsIn(bodyText(entry.body)), ...(written === undefined ? commentsIn(entry.colon) : [])];
  entry.body = flowText(value, written === undefined ? strings : quotesOf(written) || strings);
  if (written === undefined && entry.key !== '') {
    entry.colon = `: ${marksOf(entry.colon)}`;
    entry.open = entry.open.replace(/\?\s*/, '');
  }
  entry.colon = entry.colon.replace(/(^|\s)!\S*\s*$/, '$1');
  if (entry.tail === '' && collection.style === 'block') entry.tail = layout.eol;
  comment(collection, entry, comments, layout);
}

/** The comments of a whole member that is to go. */
export function commentsOf({ comments, trailing, entry }: Cut): string[] {
  return [...comments, ...(trailing === undefined ? [] : [trailing]), ...commentsIn(bodyText(entry.body))];
}

function placeInBlock(collection: Collection, moved: Cut, made: Entry, layout: Layout): void {
  const { eol } = layout;
  const { body } = moved.entry;
  const pad = ' '.repeat(collection.column);
  const block = typeof body !== 'string' && body.style === 'block';
  const by = moved.column < 0 ? shallow(bodyText(body), collection.column, layout) : collection.column - moved.column;
  const text = shifted(bodyText(body), by, block, layout);
  made.open = pad;
  made.lead = moved.comments.map((each) => `${pad}${each}${eol}`).join('');
  made.body = block ? { ...reopened(body, text) } : text;
  if (block) made.colon = `:${moved.marks === '' ? '' : ` ${moved.marks.trimEnd()}`}${eol}`;
  else if (text === '') made.colon = made.colon.trimEnd();
  made.tail = block ? '' : `${moved.trailing === undefined ? '' : ` ${moved.trailing}`}${eol}`;
}

function placeInFlow(collection: Collection, moved: Cut, made: Entry, layout: Layout): void {
  const { entry, trailing } = moved;
  const { body } = entry;
  const foreign =
    typeof body === 'string' ? !/^["'[{*]|^[\w.-]+$/.test(body) || body.includes('\n') : body.style === 'block';
  const comments = foreign ? [...moved.comments, ...commentsIn(bodyText(body))] : moved.comments;
  const last = collection.entries.at(-1);
  const pad = `${layout.eol}${indentation(layout, inside(collection))}`;
  const own = collection.column >= 0 || comments.length > 0 || trailing !== undefined || last?.post.includes('#');
  // A line that had to be made would be four columns deeper than the one that the brackets are on.
  const by =
    own && moved.column >= 0
      ? inside(collection) - moved.column
      : shallow(bodyText(body), Math.max(0, inside(collection) - 4), layout);
  made.body = foreign ? flowText(entry.value ?? null, moved.quotes) : shifted(bodyText(body), by, false, layout);
  made.lead = own
    ? `${comments.map((each) => `${pad}${each}`).join('')}${pad}`
    : last
      ? spaceOf(last.lead, moved.spaced)
      : '';
  made.post = trailing === undefined ? '' : ` ${trailing}`;
}

/** The first of several members on one line needs no space, the next ones do where names are spaced from their values. */
function spaceOf(lead: string, spaced: boolean): string {
  return (lead === '' && spaced) || lead.includes('#') ? ' ' : lead;
}

/** No member and no bracket may stand behind a comment on its line. */
function settle(collection: Collection, layout: Layout): void {
  const pad = `${layout.eol}${indentation(layout, inside(collection))}`;
  let before = '';
  for (const entry of collection.entries) {
    if (endsInComment(before) && !/^\s*\n/.test(entry.lead)) entry.lead = `${pad}${entry.lead.trimStart()}`;
    before = entry.post;
  }
  const lines = collection.end.split('\n');
  const bracket = lines.at(-1) ?? '';
  if (endsInComment(bracket.slice(0, -1))) {
    lines[lines.length - 1] = bracket.slice(0, -1);
    collection.end = `${lines.join('\n')}${closing(collection, layout)}${bracket.slice(-1)}`;
  }
  if (endsInComment(before) && !/^\s*\n/.test(collection.end)) {
    collection.end = `${closing(collection, layout)}${collection.end.trimStart()}`;
  }
}

/**
 * The end of a line, and the indentation of a bracket: not less than that of the line that the other one is on, and more where it
 * does not end the value.
 */
function closing(collection: Collection, layout: Layout): string {
  const step = collection.column < 0 ? Math.min(layout.step, collection.nested ? 3 : 4) : layout.step;
  return `${layout.eol}${indentation(layout, Math.max(0, inside(collection) - step))}`;
}

function endsInComment(text: string): boolean {
  return /(^|\s)#[^\n]*$/.test(text);
}

function inside({ column, hanging }: Collection): number {
  return column >= 0 ? column : hanging;
}

/** Anchors and tags between a colon and its value. */
function marksOf(colon: string): string {
  const marks = colon.replace(/(^|\s)#[^\r\n]*/g, '$1').match(/(?<=\s)[&!]\S*/g) ?? [];
  return marks.map((mark) => `${mark} `).join('');
}

/** What stays of the lines above a member, and the comment lines right above it. */
function splitLead(lead: string): [staying: string, attached: string] {
  const lines = lead.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const blank = lines.findLastIndex((line) => line.trim() === '');
  return [lines.slice(0, blank + 1).join(''), lines.slice(blank + 1).join('')];
}

/** Blank lines of two places that meet become one. */
function joined(staying: string, following: string, edge: boolean): string {
  const blank = staying.trim() === '';
  if (blank && (edge || /^[ \t]*\r?\n/.test(following))) return following;
  return `${staying}${following}`;
}

/** A block that was rendered and moved: nothing looks into it any more. */
function reopened(body: Collection, text: string): Collection {
  return { ...body, entries: [], end: text };
}
