import { CST, Lexer, Parser } from 'yaml';
import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import { own } from '../../../src/settings/own.ts';
import { hasHidden } from '../../../src/settings/printable.ts';
import {
  type Block,
  isBlock,
  isTrivia,
  splitIntoLines,
  splitStart,
  writtenTokens,
} from '../../../src/settings/yaml-tokens.ts';
import { flow, jsonText, scalar } from '../write.ts';

// One file, because reading lines, editing them and checking the result share a model that nothing else needs.

/** A mapping or a list whose members are on lines of their own. */
export interface Section {
  /** Column of the members, counted from 0. */
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
  /** Comment and blank lines above the member. */
  lead: string;
  /** Indentation, and the mark of a list item or an explicit key. */
  open: string;
  /** The name as written; empty in a list. */
  key: string;
  /** Text between the name and the value: the colon, anchors and tags, comments, line ends. */
  colon: string;
  /** The value as written. */
  body: string | Section;
  /** The rest of the last line, and comments that are indented deeper than the name. */
  tail: string;
  /** The brackets, if `body` is their text. */
  brackets?: CST.FlowCollection;
  /** Set for a member that an edit added. */
  added?: true;
}

/** The root, and the text before it. */
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

/**
 * Reads a YAML text whose value is `value`; rendering the tree gives the same text. A root in brackets becomes a block. Returns undefined if the root
 * is not a mapping.
 */
export function readTree(text: string, value: JsonObject, eol: string): DocumentTree | undefined {
  const tokens = [...new Parser().parse(text)];
  const at = tokens.findIndex(({ type }) => type === 'document');
  const document = tokens[at];
  if (document?.type !== 'document' || !CST.isCollection(document.value)) return undefined;
  const { start, value: contents, end = [] } = document;
  const after = writtenTokens([...end, ...tokens.slice(at + 1)]);
  if (contents.type === 'flow-collection') {
    const before = writtenTokens([...tokens.slice(0, at), ...start]).trimEnd();
    const [body, behind] = bodyOf(contents);
    const root = { ...newEntry('', value), body, brackets: contents };
    const section = asSection(root, -STEP, { eol, step: STEP });
    return {
      before: `${before === '' ? '' : `${before}${eol}`}${commentLines(commentsIn(root.colon), 0, eol)}`,
      root: { ...section, column: 0, end: `${section.end}${`${behind}${after}`.replace(/^[ \t]*(\r?\n)?/, '')}` },
    };
  }
  const below = splitIntoLines(contents, start.splice(start.findLastIndex(({ type }) => type === 'newline') + 1));
  const root = readBlock(contents, `${writtenTokens(below)}${after}`, value);
  const [first] = root.entries;
  const [header, attached] = splitLead(`${writtenTokens([...tokens.slice(0, at), ...start])}${first?.lead ?? ''}`);
  // Comments at the very beginning are about the whole document.
  if (first) first.lead = header === '' ? '' : attached;
  return { before: header === '' ? attached : header, root };
}

const STEP = 2;

/** Returns the tree of a JSON document, which has no texts. */
export function jsonTree(value: JsonObject): Section {
  const entries = Object.entries(value).map(([name, each]) => ({
    ...newEntry(name, each),
    body: isObject(each) ? jsonTree(each) : '',
  }));
  return { column: 0, entries, end: '' };
}

/** Returns the value of a JSON document. */
export function jsonOf({ entries }: Section): JsonObject {
  return Object.fromEntries(
    entries.map(({ name, value, body }) => [name, typeof body === 'string' ? value : jsonOf(body)]),
  );
}

/** Returns the text of a section. */
export function textOf({ entries, end }: Section): string {
  return `${entries.map(entryText).join('')}${end}`;
}

export function entryText({ lead, open, key, colon, body, tail }: Entry): string {
  return `${lead}${open}${key}${colon}${typeof body === 'string' ? body : textOf(body)}${tail}`;
}

/** Returns the member with this name. */
export function memberOf({ entries }: Section, name: string): Entry | undefined {
  return entries.find((entry) => entry.name === name);
}

/** Returns a member without any text yet. */
export function newEntry(name: string, value: JsonValue): Entry {
  return { name, value, lead: '', open: '', key: '', colon: '', body: '', tail: '' };
}

/** @param after lines below the last member. */
function readBlock({ items, indent: column }: Block, after: string, value: JsonValue): Section {
  let above = writtenTokens(splitStart(items[0]?.start ?? [])[0]);
  const entries = items.map((item, index) => {
    const next = items[index + 1];
    const [inside, below] = splitBelow(next ? writtenTokens(splitStart(next.start)[0]) : after, column);
    const name = item.key ? nameOf(item) : String(index);
    const entry = { ...readMember(item, inside, memberValue(value, name)), name, lead: above };
    above = below;
    return entry;
  });
  return { column, entries, end: above };
}

function readMember(item: CST.CollectionItem, below: string, value: JsonValue): Entry {
  const { key, sep, value: token } = item;
  const start = splitStart(item.start)[1];
  const [name, behindName] = key ? bodyOf(key) : ['', ''];
  const head = sep ?? start;
  // Without a value, the text behind the mark of the member is its tail.
  const mark = token ? head.length : head.findLastIndex((each) => !isTrivia(each)) + 1;
  const written = writtenTokens(head.slice(0, mark));
  const [open, colon] = sep ? [writtenTokens(start), `${behindName}${written}`] : [written, ''];
  const entry = { ...newEntry('', value), open, key: name, colon };
  if (isBlock(token) && head.at(-1)?.type === 'newline') return { ...entry, body: readBlock(token, below, value) };
  const [body, behind] = token ? bodyOf(token) : ['', writtenTokens(head.slice(mark))];
  const tail = `${behind}${below}`;
  return token?.type === 'flow-collection' ? { ...entry, body, tail, brackets: token } : { ...entry, body, tail };
}

/** Returns the text of a value, and the text behind it on its last line. */
function bodyOf(token: CST.Token): [body: string, behind: string] {
  const text = CST.stringify(token);
  const end = 'end' in token && token.end ? token.end.slice(token.type === 'flow-collection' ? 1 : 0) : undefined;
  const behind = end ? writtenTokens(end) : (/\r?\n$/.exec(text)?.[0] ?? '');
  return [text.slice(0, text.length - behind.length), behind];
}

/**
 * Splits the comment and blank lines below a member: those that belong to it, and those about the following member, which are not indented deeper.
 */
function splitBelow(text: string, column: number): [inside: string, below: string] {
  const lines = linesOf(text);
  const last = lines.findLastIndex((line) => line.search(/\S/) > column);
  return [lines.slice(0, last + 1).join(''), lines.slice(last + 1).join('')];
}

/** Returns the members of a value, one per line: a value in brackets, an alias and an empty one are rewritten. */
export function asSection(entry: Entry, column: number, layout: Layout): Section {
  if (typeof entry.body !== 'string') return entry.body;
  const { brackets, value } = entry;
  const [behind = '', ...below] = linesOf(entry.tail);
  const section: Section = { column: column + layout.step, entries: [], end: commentsIn(below.join('')).join('\n') };
  if (brackets) {
    readFlow(brackets, entry, section);
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

/** Reads members in brackets. A comment on the line of a member stays with it; others belong to the next one. */
function readFlow({ start, items }: CST.FlowCollection, around: Entry, section: Section): void {
  let between = '';
  const commentsBefore = (): string => {
    const [line = '', ...below] = linesOf(between).map((each) => each.replace(/^[^#]*/, '').trimEnd());
    const last = section.entries.at(-1);
    if (line !== '' && last) last.tail = ` ${line}`;
    else if (line !== '') around.colon = `${around.colon} ${line}`;
    return below.filter((each) => each !== '').join('\n');
  };
  for (const item of items) {
    between += writtenTokens(item.start);
    if (!item.key && !item.value) continue;
    const lead = commentsBefore();
    const isPair = start.type === 'flow-map-start';
    const name = isPair ? nameOf(item) : String(section.entries.length);
    // The parser reads a scalar in a list as a key.
    const token = isPair ? item.value : (item.value ?? item.key);
    const entry = readMember(
      isPair ? item : { start: [], ...(token && { value: token }) },
      '',
      memberValue(around.value, name),
    );
    between = `${entry.tail}${isPair || !item.sep ? '' : writtenTokens(item.sep)}`;
    section.entries.push({ ...entry, name, lead, open: '', tail: '' });
  }
  const after = commentsBefore();
  section.end = [after, section.end].filter((each) => each !== '').join('\n');
}

/** Writes an entry anew with its name in this column. Comments that have no place of their own become lines above it. */
export function layOut(entry: Entry, column: number, layout: Layout): void {
  const { eol, step } = layout;
  const { brackets, body } = entry;
  if (typeof body === 'string' && body.includes('\n')) {
    if (brackets?.items.some(({ key, value }) => key || value)) asSection(entry, column, layout);
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
  delete entry.brackets;
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

/** Splits lines at the last blank one: those after it belong to the following member. */
export function splitLead(lead: string): [staying: string, attached: string] {
  const lines = linesOf(lead);
  const blank = lines.findLastIndex((line) => line.trim() === '');
  return [lines.slice(0, blank + 1).join(''), lines.slice(blank + 1).join('')];
}

/** Returns the comments of a YAML text in their order, each from its `#` on. */
export function commentsIn(text: string): string[] {
  const comments: string[] = [];
  if (!text.includes('#')) return comments;
  let inScalar = false;
  for (const lexeme of new Lexer().lex(text)) {
    if (!inScalar && lexeme.startsWith('#')) comments.push(lexeme.trimEnd());
    // The lexer's mark before a scalar, whose text may begin with `#`.
    inScalar = lexeme === '\u001f';
  }
  return comments;
}

/** The quotes around a scalar as written. */
type Quotes = '' | '"' | "'";

export function quotesOf(written: string): Quotes {
  return written.startsWith('"') ? '"' : written.startsWith("'") ? "'" : '';
}

/** Formats a text as YAML on one line, in these quotes if they can hold it. */
export function quoteText(text: string, quotes: Quotes): string {
  if (quotes === '') return scalar(text);
  return quotes === "'" && !text.includes("'") && !hasHidden(text) ? `'${text}'` : jsonText(text);
}

function inline(value: JsonValue, quotes: Quotes): string {
  return typeof value === 'string' ? quoteText(value, quotes) : flow(value);
}

/** Returns the anchors and tags before a value, each after a space. */
function marksOf(text: string): string {
  const marks = text.replace(/(^|\s)#[^\r\n]*/g, '$1').match(/(?<=\s)[&!]\S*/g) ?? [];
  return marks.map((mark) => ` ${mark}`).join('');
}

function nameOf({ key }: CST.CollectionItem): string {
  return CST.resolveAsScalar(key)?.value ?? '';
}

function memberValue(value: JsonValue, name: string): JsonValue {
  if (Array.isArray(value)) return value[Number(name)] ?? null;
  return isObject(value) ? (own(value, name) ?? null) : null;
}

/** Splits a text into lines with their ends. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
