import {
  type CST,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import type { JsonValue } from '../../../src/json.ts';
import { own } from '../../../src/settings/own.ts';
import type { Collection, Entry } from './text-tree.ts';

/** A document as a tree, with what stands before and behind its root. */
export interface DocumentTree {
  before: string;
  root: Collection;
  after: string;
}

type Node = YAMLMap | YAMLSeq;

/** A member before it is cut out of the text. */
interface Item {
  name: string;
  /** Offset of the name or of the mark before it. */
  start: number;
  /** Of the name; both are those of the value in a list. */
  key: [number, number];
  /** Behind the colon or the dash and what belongs to the value there, without space and comments. */
  marked: number;
  node: unknown;
  comma: number | undefined;
}

/**
 * Reads a text that `parseDocument` of the settings has no findings about; `value` is what that gave. Undefined where the root is
 * no mapping.
 */
export function readTree(text: string, value: JsonValue): DocumentTree | undefined {
  const { contents } = parseDocument(text, { keepSourceTokens: true, uniqueKeys: false, logLevel: 'silent' });
  if (!isMap(contents)) return undefined;
  const reader = new Reader(text);
  if (isFlow(contents)) {
    const [from, to] = rangeOf(contents);
    return { before: text.slice(0, from), root: reader.flow(contents, value), after: text.slice(to) };
  }
  const from = reader.firstLine(contents, 0);
  const to = reader.endOfRoot(contents);
  return { before: text.slice(0, from), root: reader.block(contents, from, to, value), after: text.slice(to) };
}

class Reader {
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Begin of the lines that belong to the first member; comments at the very beginning of a document are about all of it. */
  firstLine(node: Node, floor: number): number {
    const first = itemsOf(node)[0];
    const line = this.lineStart(first?.start ?? rangeOf(node)[0]);
    const attached = this.attachedLines(floor, line);
    return attached === 0 ? line : attached;
  }

  /** The end of what the document says, and of the comment lines behind it. */
  endOfRoot(node: Node): number {
    let end = this.lineEnd(this.contentEnd(node));
    for (const line of lines(this.text.slice(end))) {
      if (!/^[ \t]*(#.*)?\r?\n?$/.test(line)) break;
      end += line.length;
    }
    return end;
  }

  block(node: Node, from: number, to: number, value: JsonValue): Collection {
    const items = itemsOf(node);
    const column = (items[0]?.start ?? 0) - this.lineStart(items[0]?.start ?? 0);
    let begin = from;
    const entries = items.map((item, index) => {
      const next = items[index + 1];
      const boundary = this.boundary(item, next ? this.lineStart(next.start) : to, column);
      const entry = this.blockEntry(item, begin, boundary, memberValue(value, item, index));
      begin = boundary;
      return entry;
    });
    return {
      style: 'block',
      list: isSeq(node),
      column,
      hanging: column,
      open: '',
      entries,
      end: this.text.slice(begin, to),
      trailingComma: false,
    };
  }

  flow(node: Node, value: JsonValue, nested = false): Collection {
    const items = itemsOf(node);
    const [from, to] = rangeOf(node);
    let begin = from + 1;
    const entries = items.map((item, index) => {
      const end = this.itemEnd(item);
      const comma = item.comma;
      const post = this.commentAt(comma === undefined ? end : comma + 1);
      const entry: Entry = {
        name: item.name,
        lead: this.text.slice(begin, item.start),
        open: this.text.slice(item.start, item.key[0]),
        key: this.text.slice(...item.key),
        ...this.value(item, memberValue(value, item, index), true),
        tail: comma === undefined ? '' : this.text.slice(end, comma),
        post: this.text.slice(comma === undefined ? end : comma + 1, post),
      };
      begin = post;
      return entry;
    });
    const lead = entries[0]?.lead ?? '';
    return {
      style: 'flow',
      list: isSeq(node),
      column: lead.includes('\n') ? lead.length - lead.lastIndexOf('\n') - 1 : -1,
      hanging: this.indentation(from) + 4,
      ...(nested ? { nested } : {}),
      open: this.text.slice(from, from + 1),
      entries,
      end: this.text.slice(begin, to),
      trailingComma: items.at(-1)?.comma !== undefined,
    };
  }

  private blockEntry(item: Item, from: number, to: number, value: JsonValue): Entry {
    const line = this.lineStart(item.start);
    const head = {
      name: item.name,
      lead: this.text.slice(from, line),
      open: this.text.slice(line, item.key[0]),
      key: this.text.slice(...item.key),
      post: '',
    };
    const { node } = item;
    if ((isMap(node) || isSeq(node)) && !isFlow(node) && this.lineStart(rangeOf(node)[0]) > item.marked) {
      const inner = this.firstLine(node, this.lineEnd(item.marked));
      const body = this.block(node, inner, to, value);
      return { ...head, colon: this.text.slice(item.key[1], inner), body, tail: '', value };
    }
    const end = this.itemEnd(item);
    return { ...head, ...this.value(item, value), tail: this.text.slice(end, to) };
  }

  /** The value of a member that is no block on lines of its own. */
  private value(item: Item, value: JsonValue, inFlow = false): Pick<Entry, 'colon' | 'body' | 'value'> {
    const { node } = item;
    const end = this.itemEnd(item);
    if (!isNode(node) || end === item.marked) return { colon: this.text.slice(item.key[1], end), body: '', value };
    const [start] = rangeOf(node);
    const colon = this.text.slice(item.key[1], start);
    if ((isMap(node) || isSeq(node)) && isFlow(node)) return { colon, body: this.flow(node, value, inFlow), value };
    return { colon, body: this.text.slice(start, end), value };
  }

  /** Where the lines of a member end: comments that are indented deeper than its name belong to it. */
  private boundary(item: Item, limit: number, column: number): number {
    let at = this.lineEnd(this.itemEnd(item));
    let boundary = at;
    for (const line of lines(this.text.slice(at, limit))) {
      at += line.length;
      const char = line.search(/\S/);
      if (char > column && line[char] === '#') boundary = at;
    }
    return boundary;
  }

  private itemEnd({ node, marked }: Item): number {
    const end = isNode(node) ? this.contentEnd(node) : undefined;
    return end === undefined || end < marked ? marked : end;
  }

  /** Behind the last character of a value; a line end that a block scalar ends with is left to the line. */
  private contentEnd(node: unknown): number {
    if ((isMap(node) || isSeq(node)) && !isFlow(node)) {
      const last = itemsOf(node).at(-1);
      return last ? this.itemEnd(last) : rangeOf(node)[1];
    }
    const [start, end] = rangeOf(node);
    if (isScalar(node) && start === end) return -1;
    if (isScalar(node) && (node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED')) {
      return start + this.text.slice(start, end).replace(/\r?\n$/, '').length;
    }
    return end;
  }

  /** Behind a comment on this line, or `at` where there is none. */
  private commentAt(at: number): number {
    const match = /^[ \t]+#[^\r\n]*/.exec(this.text.slice(at, this.lineEnd(at)));
    return at + (match?.[0].length ?? 0);
  }

  /** Begin of the comment lines right above a line. */
  private attachedLines(floor: number, line: number): number {
    let begin = line;
    for (const each of lines(this.text.slice(floor, line)).reverse()) {
      if (!/^[ \t]*#/.test(each)) break;
      begin -= each.length;
    }
    return begin;
  }

  private indentation(at: number): number {
    const line = this.text.slice(this.lineStart(at), this.lineEnd(at));
    return Math.max(0, line.search(/[^ \t]/));
  }

  private lineStart(at: number): number {
    return at === 0 ? 0 : this.text.lastIndexOf('\n', at - 1) + 1;
  }

  /** Begin of the next line. */
  private lineEnd(at: number): number {
    const end = this.text.indexOf('\n', at);
    return end === -1 ? this.text.length : end + 1;
  }
}

function itemsOf(node: Node): Item[] {
  const token = node.srcToken;
  const written = token && 'items' in token ? token.items.filter((item) => item.key || item.value || item.sep) : [];
  const all = token && 'items' in token ? token.items : [];
  return node.items.map((item, index): Item => {
    const own = written[index];
    const following = own ? all[all.indexOf(own) + 1] : undefined;
    const key = isPair(item) ? rangeOf(item.key) : undefined;
    const value = isPair(item) ? item.value : item;
    const at = rangeOf(value);
    const first = own?.start?.find(isMark);
    const start = first?.offset ?? key?.[0] ?? at[0];
    const marks = [...(own?.start ?? []), ...(own?.sep ?? [])].filter(isMark);
    const last = marks.at(-1);
    return {
      name: isPair(item) ? nameOf(item.key) : String(index),
      start,
      key: key ?? [at[0], at[0]],
      marked: Math.max(last ? last.offset + last.source.length : 0, key?.[1] ?? start),
      node: value,
      comma: following?.start.find(({ type }) => type === 'comma')?.offset,
    };
  });
}

function isMark({ type }: CST.SourceToken): boolean {
  return !['space', 'newline', 'comment', 'comma'].includes(type);
}

function nameOf(key: unknown): string {
  if (!isScalar(key)) return '';
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
}

function memberValue(value: JsonValue, { name }: Item, index: number): JsonValue {
  if (Array.isArray(value)) return value[index] ?? null;
  return typeof value === 'object' && value !== null ? (own(value, name) ?? null) : null;
}

function isFlow(node: Node): boolean {
  return node.flow === true;
}

function rangeOf(node: unknown): [number, number] {
  const range = isNode(node) || isAlias(node) ? node.range : undefined;
  return range ? [range[0], range[1]] : [0, 0];
}

/** The lines of a text with their ends. */
function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
