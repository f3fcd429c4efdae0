import { isMap, isNode, isPair, isScalar, isSeq, Lexer, parseDocument, type YAMLMap, type YAMLSeq } from 'yaml';
import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import { own } from '../../../src/settings/own.ts';
import { hasHidden } from '../../../src/settings/printable.ts';
import { flow, jsonText, scalar } from '../write.ts';

// One file, because reading lines, editing them and checking the result share a model that nothing else needs.

/** A mapping or a list whose members are on lines of their own. */
export interface Section {
  /** Where members begin, counted from 0. */
  column: number;
  entries: Entry[];
  /** Comment and blank lines after the last member. */
  end: string;
}

/** A member of a section. Its texts follow each other in this order and cover whole lines. */
export interface Entry {
  /** Name in the mapping; position in a list. */
  name: string;
  value: JsonValue;
  /** Comment and blank lines above. */
  lead: string;
  /** Indentation, and the mark of a list item or an explicit key. */
  open: string;
  /** The name as written; empty in a list. */
  key: string;
  /** From the name to the value: the colon, anchors and tags, comments, line ends. */
  colon: string;
  /** The value as written. */
  body: string | Section;
  /** The rest of the last line, and comments that are indented deeper than the name. */
  tail: string;
  /** The parsed value whose text is `body`. */
  node?: unknown;
  /** Added by an edit. */
  added?: true;
}

/** Everything before the root, and the root. */
export interface DocumentTree {
  before: string;
  root: Section;
}

/** The formatting of lines that an edit adds. */
export interface Layout {
  eol: string;
  /** Columns per level. */
  step: number;
}

type Collection = YAMLMap | YAMLSeq;

/**
 * Reads a YAML text of which `value` is the value; rendering the tree gives the same text. A root in brackets becomes a
 * block. Undefined if the root is not a mapping.
 */
export function readTree(text: string, value: JsonObject, eol: string): DocumentTree | undefined {
  const { contents } = parseDocument(text, { uniqueKeys: false, logLevel: 'silent' });
  if (!isMap(contents)) return undefined;
  if (contents.flow) {
    const [from, to] = rangeOf(contents);
    const before = text.slice(0, from).trimEnd();
    const root = { ...newEntry('', value), body: text.slice(from, to), node: contents };
    const { entries, end } = asSection(root, -STEP, { eol, step: STEP });
    const after = text.slice(to).replace(/^[ \t]*(\r?\n)?/, '');
    return {
      before: `${before === '' ? '' : `${before}${eol}`}${commentLines(commentsIn(root.colon), 0, eol)}`,
      root: { column: 0, entries, end: `${end}${after}` },
    };
  }
  const [header, attached] = splitLead(text.slice(0, lineStart(text, startOf(contents.items[0]))));
  // Comments at the very beginning are about the whole document.
  const before = header === '' ? attached : header;
  return { before, root: readSection(contents, text, before.length, text.length, value) };
}

const STEP = 2;

/** A JSON document, which has no texts. */
export function jsonTree(value: JsonObject): Section {
  const entries = Object.entries(value).map(([name, each]) => ({
    ...newEntry(name, each),
    body: isObject(each) ? jsonTree(each) : '',
  }));
  return { column: 0, entries, end: '' };
}

/** The value of a JSON document. */
export function jsonOf({ entries }: Section): JsonObject {
  return Object.fromEntries(
    entries.map(({ name, value, body }) => [name, typeof body === 'string' ? value : jsonOf(body)]),
  );
}

/** The text of a section. */
export function textOf({ entries, end }: Section): string {
  return `${entries.map(entryText).join('')}${end}`;
}

export function entryText({ lead, open, key, colon, body, tail }: Entry): string {
  return `${lead}${open}${key}${colon}${typeof body === 'string' ? body : textOf(body)}${tail}`;
}

/** The member with this name. */
export function memberOf({ entries }: Section, name: string): Entry | undefined {
  return entries.find((entry) => entry.name === name);
}

/** A member without any text yet. */
export function newEntry(name: string, value: JsonValue): Entry {
  return { name, value, lead: '', open: '', key: '', colon: '', body: '', tail: '' };
}

function readSection(node: Collection, text: string, from: number, to: number, value: JsonValue): Section {
  const starts = node.items.map((item) => lineStart(text, startOf(item)));
  const column = text.slice(starts[0]).search(/[^ ]/);
  let begin = from;
  const entries = node.items.map((item, index) => {
    const line = starts[index] ?? begin;
    const lines = text.slice(line, starts[index + 1] ?? to);
    const end = line + lines.length - trailingLines(lines, column).length;
    const entry = readEntry(item, text, { begin, line, end }, memberValue(value, item, index));
    begin = end;
    return { ...entry, name: isPair(item) ? entry.name : String(index) };
  });
  return { column, entries, end: text.slice(begin, to) };
}

function readEntry(
  item: unknown,
  text: string,
  { begin, line, end }: { begin: number; line: number; end: number },
  value: JsonValue,
): Entry {
  const { name, node, key, body } = partsOf(item, text);
  const entry = {
    ...newEntry(name, value),
    lead: text.slice(begin, line),
    open: text.slice(line, key[0]),
    key: text.slice(...key),
    node,
  };
  if ((isMap(node) || isSeq(node)) && !node.flow && lineStart(text, startOf(node.items[0])) > key[1]) {
    const inner = lineEnd(text, text.indexOf(':', key[1]));
    return { ...entry, colon: text.slice(key[1], inner), body: readSection(node, text, inner, end, value) };
  }
  return { ...entry, colon: text.slice(key[1], body[0]), body: text.slice(...body), tail: text.slice(body[1], end) };
}

/** The comment and blank lines at the end that belong to what follows: not indented deeper than the column. */
function trailingLines(text: string, column: number): string {
  const lines = linesOf(text);
  const last = lines.findLastIndex((line) => {
    const sign = line.search(/\S/);
    return sign !== -1 && !(line[sign] === '#' && sign <= column) && !/^\.\.\.\s/.test(line);
  });
  return lines.slice(Math.max(last, 0) + 1).join('');
}

/** The members of a value, one per line: one that is in brackets, an alias or empty is rewritten. */
export function asSection(entry: Entry, column: number, layout: Layout): Section {
  if (typeof entry.body !== 'string') return entry.body;
  const { node, body, value } = entry;
  const [behind = '', ...below] = linesOf(entry.tail);
  const section: Section = { column: column + layout.step, entries: [], end: commentsIn(below.join('')).join('\n') };
  if ((isMap(node) || isSeq(node)) && node.flow) {
    readFlow(node, body, entry, section);
  } else {
    const members = Object.entries(isObject(value) ? value : {});
    section.entries = members.map(([name, each]) => ({
      ...newEntry(name, each),
      key: scalar(name),
      colon: ':',
      body: flow(each),
    }));
  }
  const [comment, ...others] = [...commentsIn(entry.colon), ...commentsIn(behind)];
  entry.body = section;
  entry.open = entry.open.replace(/\?\s*/, '');
  entry.colon = `:${marksOf(entry.colon)}${comment === undefined ? '' : ` ${comment}`}${layout.eol}`;
  entry.tail = '';
  addComments(entry, others, column, layout.eol);
  layOutMembers(section, section.column, layout);
  return section;
}

/** Members in brackets. A comment on the line of a member stays with it, the others are about the next one. */
function readFlow(node: Collection, body: string, around: Entry, section: Section): void {
  const offset = rangeOf(node)[0];
  let begin = 1;
  const commentsBefore = (end: number): string => {
    const [line = '', ...below] = linesOf(body.slice(begin, end)).map((each) => each.replace(/^[^#]*/, '').trimEnd());
    const last = section.entries.at(-1);
    if (line !== '' && last) last.tail = ` ${line}`;
    else if (line !== '') around.colon = `${around.colon} ${line}`;
    return below.filter((each) => each !== '').join('\n');
  };
  for (const [index, item] of node.items.entries()) {
    const { name, node: inner, key, body: place } = partsOf(item, '');
    const [keyStart, keyEnd, start, end] = [...key, ...place].map((at) => at - offset);
    const lead = commentsBefore(keyStart ?? 0);
    section.entries.push({
      ...newEntry(isPair(item) ? name : String(index), memberValue(around.value, item, index)),
      lead,
      key: body.slice(keyStart, keyEnd),
      colon: body.slice(keyEnd, start),
      body: body.slice(start, end),
      node: inner,
    });
    begin = end ?? 0;
  }
  const after = commentsBefore(body.length - 1);
  section.end = [after, section.end].filter((each) => each !== '').join('\n');
}

/** Writes an entry anew with its name in this column. Comments that have no place of their own become lines above it. */
export function layOut(entry: Entry, column: number, layout: Layout): void {
  const { eol, step } = layout;
  const { node, body } = entry;
  if (typeof body === 'string' && body.includes('\n')) {
    if ((isMap(node) || isSeq(node)) && node.flow && node.items.length > 0) asSection(entry, column, layout);
    else {
      entry.lead = `${entry.lead}\n${commentsIn(body).join('\n')}`;
      entry.body = inline(entry.value, quotesOf(body));
    }
  }
  const isItem = entry.key === '';
  const marks = marksOf(isItem ? entry.open : entry.colon);
  const [line = '', ...below] = linesOf(entry.tail);
  const inColon = commentsIn(entry.colon);
  const behind = typeof entry.body === 'string' ? commentsIn(line)[0] : inColon.shift();
  const comment = behind === undefined ? '' : ` ${behind}`;
  entry.lead = commentLines([...commentsIn(entry.lead), ...inColon, ...commentsIn(below.join(''))], column, eol);
  entry.open = `${' '.repeat(column)}${isItem ? `-${marks} ` : ''}`;
  if (typeof entry.body === 'string') {
    entry.colon = isItem ? '' : `:${marks}${entry.body === '' ? '' : ' '}`;
    entry.tail = `${comment}${eol}`;
  } else {
    entry.colon = `:${marks}${comment}${eol}`;
    layOutMembers(entry.body, column + step, layout);
  }
}

function layOutMembers(section: Section, column: number, layout: Layout): void {
  section.column = column;
  for (const entry of section.entries) layOut(entry, column, layout);
  section.end = commentLines(commentsIn(section.end), column, layout.eol);
}

/** Replaces a value where it is. Comments inside the old one become lines above it. */
export function setValue(entry: Entry, value: JsonValue, column: number, { eol }: Layout): void {
  const { body } = entry;
  const written = typeof body === 'string' ? body : textOf(body);
  const comments = commentsIn(written);
  if (typeof body === 'string') {
    // The tag of the old value need not fit.
    entry.colon = entry.colon.replace(/(^|\s)!\S*\s*$/, '$1');
  } else {
    comments.push(...commentsIn(entry.colon));
    entry.colon = `:${marksOf(entry.colon).replace(/ !\S+/g, '')} `;
    entry.open = entry.open.replace(/\?\s*/, '');
    entry.tail = eol;
  }
  entry.value = value;
  entry.body = inline(value, typeof body === 'string' ? quotesOf(body) : '');
  delete entry.node;
  addComments(entry, comments, column, eol);
}

/** Adds comment lines above a member, and above the comments that it has. */
export function addComments(entry: Entry, comments: readonly string[], column: number, eol: string): void {
  const [staying, attached] = splitLead(entry.lead);
  entry.lead = `${staying}${commentLines(comments, column, eol)}${attached}`;
}

function commentLines(comments: readonly string[], column: number, eol: string): string {
  return comments.map((comment) => `${' '.repeat(column)}${comment}${eol}`).join('');
}

/** The lines up to the last blank one, and those after it, which are about what follows. */
export function splitLead(lead: string): [staying: string, attached: string] {
  const lines = linesOf(lead);
  const blank = lines.findLastIndex((line) => line.trim() === '');
  return [lines.slice(0, blank + 1).join(''), lines.slice(blank + 1).join('')];
}

/** The comments of a YAML text in their order, each from its `#` on. */
export function commentsIn(text: string): string[] {
  const comments: string[] = [];
  if (!text.includes('#')) return comments;
  let inScalar = false;
  for (const lexeme of new Lexer().lex(text)) {
    if (!inScalar && lexeme.startsWith('#')) comments.push(lexeme.trimEnd());
    // The lexer's mark before a scalar, whose text may begin with the character of a comment.
    inScalar = lexeme === '\u001f';
  }
  return comments;
}

/** The quotes around a scalar as written. */
type Quotes = '' | '"' | "'";

export function quotesOf(written: string): Quotes {
  return written.startsWith('"') ? '"' : written.startsWith("'") ? "'" : '';
}

/** A text as YAML on one line, in these quotes where they can hold it. */
export function quoted(text: string, quotes: Quotes): string {
  if (quotes === '') return scalar(text);
  return quotes === "'" && !text.includes("'") && !hasHidden(text) ? `'${text}'` : jsonText(text);
}

function inline(value: JsonValue, quotes: Quotes): string {
  return typeof value === 'string' ? quoted(value, quotes) : flow(value);
}

/** Anchors and tags before a value, each after a space. */
function marksOf(text: string): string {
  const marks = text.replace(/(^|\s)#[^\r\n]*/g, '$1').match(/(?<=\s)[&!]\S*/g) ?? [];
  return marks.map((mark) => ` ${mark}`).join('');
}

type Range = [from: number, to: number];

/** Name, value, and the ranges of both, of a pair or a list item. */
function partsOf(item: unknown, text: string): { name: string; node: unknown; key: Range; body: Range } {
  if (!isPair(item)) {
    const [start, end] = valueRange(item, 0, text);
    return { name: '', node: item, key: [start, start], body: [start, end] };
  }
  const key = rangeOf(item.key);
  return { name: nameOf(item.key), node: item.value, key, body: valueRange(item.value, key[1], text) };
}

/** The line end that a block scalar ends with is not part of it. */
function valueRange(node: unknown, otherwise: number, text: string): Range {
  if (!isNode(node)) return [otherwise, otherwise];
  const [start, end] = rangeOf(node);
  const isBlock = isScalar(node) && (node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED');
  return [start, isBlock ? start + text.slice(start, end).replace(/\r?\n$/, '').length : end];
}

function startOf(item: unknown): number {
  return rangeOf(isPair(item) ? item.key : item)[0];
}

function rangeOf(node: unknown): Range {
  const range = isNode(node) ? node.range : undefined;
  return range ? [range[0], range[1]] : [0, 0];
}

function nameOf(key: unknown): string {
  if (!isScalar(key)) return '';
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
}

function memberValue(value: JsonValue, item: unknown, index: number): JsonValue {
  if (Array.isArray(value)) return value[index] ?? null;
  return isObject(value) && isPair(item) ? (own(value, nameOf(item.key)) ?? null) : null;
}

function lineStart(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1;
}

/** Start of the next line. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end + 1;
}

/** The lines of a text with their ends. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
