// Longer than most: grammar and tokens of one small language belong together.
import { MOST_LEVELS } from '../../src/json.ts';
import { quotedName } from '../../src/settings/printable.ts';
import { xmlProblem } from './xml.ts';

/** What a property list holds. Dictionaries are maps: any text may be a key, `__proto__` too. */
export type PlistValue = boolean | number | string | readonly PlistValue[] | PlistDictionary | PlistOther;
export type PlistDictionary = ReadonlyMap<string, PlistValue>;
/** Something that no setting can be. */
export interface PlistOther {
  /** With its article: `a date`. */
  other: string;
}

export function isDictionary(value: PlistValue | undefined): value is PlistDictionary {
  return value instanceof Map;
}

export function isOther(value: PlistValue): value is PlistOther {
  return typeof value === 'object' && 'other' in value;
}

/**
 * Reads a property list in XML, tag by tag. The library `plist` passes over a key without a value, a key twice and letters in a
 * number, refuses a key such as `__proto__`, quotes values in its messages, and is a quarter of what `import-profile` loads.
 * @throws Error with a clause that says what is wrong and in which line. It quotes nothing but keys: a value may be a secret.
 */
export function xmlPlist(text: string): PlistValue {
  try {
    return new Reading().value(text);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const line = text.slice(0, problem.at).split('\n').length;
    throw new Error(`${problem.message} (line ${line})`);
  }
}

/** What is wrong, as a clause, and where. */
class Problem extends Error {
  readonly at: number;

  constructor(reason: string, at: number) {
    super(reason);
    this.at = at;
  }
}

const BAD_CHARACTER = 'it has a character that XML does not allow';
// biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of them.
const BAD_CHARACTERS = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;
/** No document may bring names of its own. */
const BAD_REFERENCE = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)/;
const REFERENCE = /&(?:#(x?)([0-9A-Fa-f]+)|([a-z]+));/g;
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const VALUES = new Set(['dict', 'array', 'string', 'integer', 'real', 'true', 'false', 'date', 'data']);
const TEXTS = new Set(['key', 'string', 'integer', 'real', 'date', 'data']);

/** An element that is open. */
interface Level {
  tag: string;
  /** Offset of the tag. */
  at: number;
  items: PlistValue[];
  /** Of a dictionary. */
  entries: Map<string, PlistValue>;
  /** Keys of a dictionary as they are written. */
  keys: Set<string>;
  /** The key whose value comes next. */
  key?: string;
}

class Reading {
  private readonly open: Level[] = [];
  /** Text since the last tag, as it is written and as it is meant. */
  private written = '';
  private meant = '';
  private result: PlistValue | undefined;
  /** What is only said of a list that has no other mistakes. */
  private doubt: string | undefined;

  value(text: string): PlistValue {
    const bad = text.search(BAD_CHARACTERS);
    if (bad !== -1) throw new Problem(BAD_CHARACTER, bad);
    for (const token of plistTokens(text)) this.take(token);
    const left = this.open.at(-1);
    if (left) throw new Problem(`<${left.tag}> is not closed`, left.at);
    if (this.result === undefined) throw new Problem('it is empty', text.length);
    if (this.doubt !== undefined) throw new Error(this.doubt);
    return this.result;
  }

  private take(token: PlistToken): void {
    const { at } = token;
    switch (token.kind) {
      case 'comment':
        return;
      case 'unknown':
        throw new Problem(token.reason, at);
      case 'declaration':
        if (this.open.length > 0) throw new Problem('a declaration is in the wrong place', at);
        return;
      case 'characters':
      case 'text':
        this.text(token);
        return;
      case 'tag':
        if (!token.end) this.begin(token.tag, at);
        if (token.end || token.empty) this.end(token.tag, at);
        if (this.open.length > MOST_LEVELS) throw new Problem(`it nests deeper than ${MOST_LEVELS} levels`, at);
    }
  }

  private text({ kind, text, at }: TextToken): void {
    if (kind === 'text') {
      const reference = BAD_REFERENCE.exec(text);
      if (reference) throw new Problem('a "&" starts no known entity', at + reference.index);
    }
    this.written += text;
    const plain = text.replace(/\r\n?/g, '\n');
    this.meant +=
      kind === 'text' ? plain.replace(REFERENCE, (_, x, code, name) => characterOf(x, code, name, at)) : plain;
    // XML has fewer blanks than the language has.
    if (kind === 'text' && !/[^ \t\r\n]/.test(text)) return;
    if (TEXTS.has(this.open.at(-1)?.tag ?? '')) return;
    throw new Problem('there is text between values', at + Math.max(0, text.search(/\S/)));
  }

  private begin(tag: string, at: number): void {
    if (this.result !== undefined) throw new Problem('unexpected content after the end of the list', at);
    const reason = beginProblem(tag, this.open.at(-1));
    if (reason !== undefined) throw new Problem(reason, at);
    this.written = '';
    this.meant = '';
    this.open.push({ tag, at, items: [], entries: new Map(), keys: new Set() });
  }

  private end(tag: string, at: number): void {
    const level = this.open.pop();
    if (level?.tag !== tag) throw new Problem(`${known(tag, '/')} has no opening tag`, at);
    const reason = endProblem(level, this.written);
    if (reason !== undefined) throw new Problem(reason, at);
    const above = this.open.at(-1);
    if (tag === 'key') this.nextKey(above, at);
    else if (!above) this.result = level.items.length === 1 ? level.items[0] : level.items;
    else if (above.key === undefined) above.items.push(this.valueOf(level));
    else {
      above.entries.set(above.key, this.valueOf(level));
      delete above.key;
    }
    this.written = '';
    this.meant = '';
  }

  private nextKey(dictionary: Level | undefined, at: number): void {
    const [written, key] = [this.written, this.meant];
    const twice = (name: string) => `the key ${quotedName(name)} appears twice in one dictionary`;
    if (dictionary?.keys.has(written)) throw new Problem(twice(written), at);
    if (dictionary?.entries.has(key)) this.doubt ??= twice(key);
    dictionary?.keys.add(written);
    if (dictionary) dictionary.key = key;
  }

  private valueOf({ tag, items, entries }: Level): PlistValue {
    switch (tag) {
      case 'dict':
        return entries;
      case 'array':
        return items;
      case 'integer':
        return numberOf(Number.parseInt(this.meant, 10));
      case 'real':
        return numberOf(Number.parseFloat(this.meant));
      case 'true':
      case 'false':
        return tag === 'true';
      case 'date':
        if (this.meant === '') this.doubt = NO_LIST;
        return { other: 'a date' };
      case 'data':
        if (!isBase64(this.meant)) this.doubt = NO_LIST;
        return { other: 'data' };
      default:
        return this.meant;
    }
  }
}

const NO_LIST = 'it is not a property list';

type TextToken = Extract<PlistToken, { kind: 'text' | 'characters' }>;

/** Numbers that stand for no character of XML are refused, and not taken for what some parser makes of them. */
function characterOf(hexadecimal: string | undefined, digits: string | undefined, name: string, at: number): string {
  if (digits === undefined) return NAMED[name] ?? '';
  const code = Number.parseInt(digits, hexadecimal === 'x' ? 16 : 10);
  const char = code <= 0x10ffff ? String.fromCodePoint(code) : '\0';
  if (xmlProblem(char) !== undefined) throw new Problem(BAD_CHARACTER, at);
  return char;
}

function isBase64(text: string): boolean {
  try {
    atob(text.replace(/\s+/g, ''));
    return true;
  } catch {
    return false;
  }
}

function beginProblem(tag: string, above: Level | undefined): string | undefined {
  if (tag === 'plist') return above ? 'there is a nested <plist>' : undefined;
  if (above === undefined) return 'it does not begin with <plist>';
  if (TEXTS.has(above.tag)) return `${known(tag)} is inside <${above.tag}>`;
  if (tag !== 'key' && !VALUES.has(tag)) return `<${tag.slice(0, 40)}> is not a tag of a property list`;
  if (above.tag !== 'dict') return tag === 'key' ? '<key> is outside of <dict>' : undefined;
  if (above.key !== undefined) return tag === 'key' ? `the key ${quotedName(lastKey(above))} has no value` : undefined;
  return tag === 'key' ? undefined : `<${tag}> has no key`;
}

function endProblem(level: Level, written: string): string | undefined {
  if (level.key !== undefined) return `the key ${quotedName(lastKey(level))} has no value`;
  if (level.tag === 'integer' && !/^\s*[+-]?\d{1,20}\s*$/.test(written)) return '<integer> does not contain an integer';
  const real = /^\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*$/;
  return level.tag === 'real' && !real.test(written) ? '<real> does not contain a number' : undefined;
}

/** As it is written. */
function lastKey({ keys }: Level): string {
  return [...keys].at(-1) ?? '';
}

/** A tag that may come out of the middle of a text is named only where it is one that property lists have. */
function known(tag: string, slash = ''): string {
  return tag === 'plist' || TEXTS.has(tag) || VALUES.has(tag) ? `<${slash}${tag}>` : 'an unknown tag';
}

/** A number that JSON can hold. An integer of more than 53 bits is not exact, as it is not in JSON; no setting takes one. */
export function numberOf(value: number): number | PlistOther {
  return Number.isFinite(value) ? value : { other: 'not a finite number' };
}

/**
 * A piece of a property list in XML, with the offset of its first character. Comments and character data are one each, so that tags in
 * them do not count.
 */
type PlistToken = { at: number } & Piece;
type Piece =
  | { kind: 'tag'; tag: string; end: boolean; empty: boolean }
  /** Between tags, with references as they are written. */
  | { kind: 'text'; text: string }
  /** Between the marks of character data, where no reference counts. */
  | { kind: 'characters'; text: string }
  | { kind: 'comment' }
  /** A processing instruction or the type of the document. */
  | { kind: 'declaration' }
  /** What no property list has; the reason is a clause. */
  | { kind: 'unknown'; reason: string };

const TAG = /<(\/?)([A-Za-z]+)(?:\s[^<>]*?)?(\/?)>/y;
const DOCUMENT_TYPE = /<!DOCTYPE[^<>[\]]*>/y;

interface Enclosed {
  begin: string;
  end: string;
  token(text: string): Piece;
  unfinished: string;
}

const ENCLOSED: readonly Enclosed[] = [
  { begin: '<!--', end: '-->', token: () => ({ kind: 'comment' }), unfinished: 'a comment is not closed' },
  {
    begin: '<![CDATA[',
    end: ']]>',
    token: (text) => ({ kind: 'characters', text }),
    unfinished: 'a CDATA section is not closed',
  },
  {
    begin: '<?',
    end: '?>',
    token: () => ({ kind: 'declaration' }),
    unfinished: 'a processing instruction is not closed',
  },
];

/**
 * The pieces of a text in their order, up to the first unknown one. Every character is looked at a fixed number of times: what
 * has no end is the last piece.
 */
function* plistTokens(text: string): Generator<PlistToken, void> {
  let at = 0;
  while (at < text.length) {
    const [token, next] = tokenAt(text, at);
    yield { at, ...token };
    if (token.kind === 'unknown') return;
    at = next;
  }
}

/** The piece that begins there, and where the next one does. */
function tokenAt(text: string, at: number): [Piece, number] {
  if (text[at] !== '<') {
    const end = endOf(text, '<', at);
    return [{ kind: 'text', text: text.slice(at, end) }, end];
  }
  for (const { begin, end, token, unfinished } of ENCLOSED) {
    if (!text.startsWith(begin, at)) continue;
    const from = at + begin.length;
    const to = text.indexOf(end, from);
    if (to === -1) return [{ kind: 'unknown', reason: unfinished }, text.length];
    return [token(text.slice(from, to)), to + end.length];
  }
  DOCUMENT_TYPE.lastIndex = at;
  if (DOCUMENT_TYPE.test(text)) return [{ kind: 'declaration' }, DOCUMENT_TYPE.lastIndex];
  TAG.lastIndex = at;
  const [, slash, tag, closed] = TAG.exec(text) ?? [];
  if (tag !== undefined) return [{ kind: 'tag', tag, end: slash === '/', empty: closed === '/' }, TAG.lastIndex];
  const begun = text.startsWith('<!', at)
    ? '"<!" starts nothing that is allowed in a property list'
    : '"<" does not start a tag';
  return [{ kind: 'unknown', reason: begun }, text.length];
}

function endOf(text: string, char: string, from: number): number {
  const found = text.indexOf(char, from);
  return found === -1 ? text.length : found;
}
