import { MOST_LEVELS } from '../../src/json.ts';
import { quotedName } from '../../src/settings/printable.ts';

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
 * Reads a property list in XML.
 * @throws Error with a clause that says what is wrong and in which line. It quotes nothing but keys: a value may be a secret.
 */
export async function xmlPlist(text: string): Promise<PlistValue> {
  const problem = plistProblem(text);
  if (problem !== undefined) throw new Error(problem);
  const { parse } = await import('plist');
  let value: unknown;
  try {
    value = parse(withNumberedKeys(text));
  } catch {
    // The parser's message may quote the text, which may hold a password, and so it is not kept as a cause.
    throw new Error('it is not a property list');
  }
  return asValue(value);
}

/**
 * Signs like others in XML 1.0. The parser makes line feeds of the first three, as XML 1.1 asks for two of them, and writes a
 * warning to the terminal at the last one.
 */
const MISREAD = /[\u0085\u2028\u2029\ufffd]/g;

/**
 * The same list with a number in front of each key, without comments and character data: the parser refuses a key that would
 * reach the prototype of its objects, takes the first piece of a key for the whole, and passes over a key that stands twice.
 */
function withNumberedKeys(text: string): string {
  const pieces: string[] = [];
  let key = 0;
  for (const token of plistTokens(text)) {
    if (token.kind === 'text') pieces.push(token.text);
    else if (token.kind === 'characters') pieces.push(escaped(token.text));
    else if (token.kind === 'tag') {
      const { tag, end, empty } = token;
      if (tag === 'key' && !end) pieces.push(`<key>${key++}:${empty ? '</key>' : ''}`);
      // What stands beside the name of a tag means nothing, and the parser may complain about it to the terminal.
      else pieces.push(`<${end ? '/' : ''}${tag}${empty ? '/' : ''}>`);
    }
  }
  return pieces.join('').replace(MISREAD, (sign) => `&#x${sign.charCodeAt(0).toString(16)};`);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function asValue(value: unknown): PlistValue {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return numberOf(value);
  if (Array.isArray(value)) return value.map(asValue);
  if (value instanceof Date) return { other: 'a date' };
  if (value instanceof Uint8Array) return { other: 'data' };
  if (typeof value !== 'object' || value === null) return { other: 'null' };
  const dictionary = new Map<string, PlistValue>();
  for (const [numbered, inner] of Object.entries(value)) {
    const key = numbered.slice(numbered.indexOf(':') + 1);
    if (dictionary.has(key)) throw new Error(`the key ${quotedName(key)} stands twice in one dictionary`);
    dictionary.set(key, asValue(inner));
  }
  return dictionary;
}

/** A number that JSON can hold. An integer of more than 53 bits is not exact, as it is not in JSON; no setting takes one. */
export function numberOf(value: number): number | PlistOther {
  return Number.isFinite(value) ? value : { other: 'not a finite number' };
}

/** No document may bring names of its own. */
const BAD_REFERENCE = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)/;
const NUMBERED = /&#(x?)([0-9A-Fa-f]+);/gi;
const VALUES = new Set(['dict', 'array', 'string', 'integer', 'real', 'true', 'false', 'date', 'data']);
const TEXTS = new Set(['key', 'string', 'integer', 'real', 'date', 'data']);

/** A dictionary that is open, with what comes next in it. */
interface Level {
  tag: string;
  /** Offset of the tag. */
  at: number;
  keys?: Set<string>;
  awaitsValue?: boolean;
}

/** What is wrong, as a clause, and where. */
interface Problem {
  reason: string;
  at: number;
}

/**
 * Why a text in XML is no property list that can be relied on, as a clause with the line; `undefined` when it may be parsed.
 * Parsers pass over more than they should: a key without a value, a key twice, letters in a number. What stands in the text is
 * not quoted, because it may be a password; of its names only known tags are, and keys.
 */
export function plistProblem(text: string): string | undefined {
  const problem = problemIn(text);
  if (!problem) return undefined;
  const line = text.slice(0, problem.at).split('\n').length;
  return `${problem.reason} (line ${line})`;
}

function problemIn(text: string): Problem | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of them.
  const bad = text.search(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/);
  if (bad !== -1) return { reason: BAD_SIGN, at: bad };
  const open: Level[] = [];
  let content = '';
  let complete = false;
  for (const token of plistTokens(text)) {
    const { at } = token;
    const within = open.at(-1)?.tag ?? '';
    switch (token.kind) {
      case 'comment':
        continue;
      case 'unknown':
        return { reason: token.reason, at };
      case 'declaration':
        if (open.length > 0) return { reason: 'a declaration stands where none belongs', at };
        continue;
      case 'characters':
      case 'text': {
        content += token.text;
        const problem = textProblem(token, TEXTS.has(within));
        if (problem) return problem;
        continue;
      }
      case 'tag': {
        const { tag } = token;
        if (token.end) {
          const level = open.pop();
          if (level?.tag !== tag) return { reason: `${known(tag, '/')} closes nothing`, at };
          const reason = endProblem(level, content, open.at(-1));
          if (reason) return { reason, at };
          complete ||= open.length === 0;
          content = '';
          continue;
        }
        if (complete) return { reason: 'something follows the end of the list', at };
        const reason = beginProblem(tag, open.at(-1));
        if (reason) return { reason, at };
        content = '';
        if (token.empty) {
          const end = endProblem({ tag, at }, '', open.at(-1));
          if (end) return { reason: end, at };
        } else {
          open.push(tag === 'dict' ? { tag, at, keys: new Set() } : { tag, at });
          if (open.length > MOST_LEVELS) return { reason: `it nests deeper than ${MOST_LEVELS} levels`, at };
        }
      }
    }
  }
  const left = open.at(-1);
  if (left) return { reason: `<${left.tag}> is not closed`, at: left.at };
  return complete ? undefined : { reason: 'it is empty', at: text.length };
}

type TextToken = Extract<PlistToken, { kind: 'text' | 'characters' }>;

function textProblem({ kind, text, at }: TextToken, inText: boolean): Problem | undefined {
  if (kind === 'text') {
    const reference = BAD_REFERENCE.exec(text);
    if (reference) return { reason: 'a "&" begins nothing that is known', at: at + reference.index };
    if (!allSigns(text)) return { reason: BAD_SIGN, at };
    // XML has fewer blanks than the language has.
    if (!/[^ \t\r\n]/.test(text)) return undefined;
  }
  return inText ? undefined : { reason: 'a text stands between values', at: at + Math.max(0, text.search(/\S/)) };
}

const BAD_SIGN = 'it has a sign that XML cannot have';

/** Numbers of characters that stand for none in XML would be taken for what the parser makes of them. */
function allSigns(text: string): boolean {
  for (const [, hexadecimal, digits] of text.matchAll(NUMBERED)) {
    const code = Number.parseInt(digits ?? '', hexadecimal === '' ? 10 : 16);
    const usual = code >= 0x20 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    if (!(usual || code === 0x9 || code === 0xa || code === 0xd) || code === 0xfffe || code === 0xffff) return false;
  }
  return true;
}

function beginProblem(tag: string, above: Level | undefined): string | undefined {
  if (tag === 'plist') return above ? '<plist> stands inside' : undefined;
  if (above === undefined) return 'it does not begin with <plist>';
  if (TEXTS.has(above.tag)) return `${known(tag)} stands inside <${above.tag}>`;
  if (tag !== 'key' && !VALUES.has(tag)) return `<${tag.slice(0, 40)}> is no tag of a property list`;
  if (above.keys === undefined) return tag === 'key' ? '<key> stands outside of <dict>' : undefined;
  if (above.awaitsValue) return tag === 'key' ? `the key ${quotedName(lastKey(above))} has no value` : undefined;
  return tag === 'key' ? undefined : `<${tag}> has no key`;
}

function endProblem(level: Level, content: string, above: Level | undefined): string | undefined {
  if (level.awaitsValue) return `the key ${quotedName(lastKey(level))} has no value`;
  if (level.tag === 'integer' && !/^\s*[+-]?\d{1,20}\s*$/.test(content)) return '<integer> holds no integer';
  if (level.tag === 'real' && !/^\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*$/.test(content))
    return '<real> holds no number';
  if (above?.keys === undefined) return undefined;
  if (level.tag !== 'key') {
    above.awaitsValue = false;
    return undefined;
  }
  if (above.keys.has(content)) return `the key ${quotedName(content)} stands twice in one dictionary`;
  above.keys.add(content);
  above.awaitsValue = true;
  return undefined;
}

function lastKey({ keys }: Level): string {
  return [...(keys ?? [])].at(-1) ?? '';
}

/** A tag that may come out of the middle of a text is named only where it is one that property lists have. */
function known(tag: string, slash = ''): string {
  return tag === 'plist' || TEXTS.has(tag) || VALUES.has(tag) ? `<${slash}${tag}>` : 'a tag that no property list has';
}

/**
 * A piece of a property list in XML, with the offset of its first sign. Comments and character data are one each, so that tags in
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
  { begin: '<!--', end: '-->', token: () => ({ kind: 'comment' }), unfinished: 'a comment has no end' },
  {
    begin: '<![CDATA[',
    end: ']]>',
    token: (text) => ({ kind: 'characters', text }),
    unfinished: 'character data has no end',
  },
  { begin: '<?', end: '?>', token: () => ({ kind: 'declaration' }), unfinished: 'an instruction has no end' },
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
  const begun = text.startsWith('<!', at) ? '"<!" begins nothing that a property list has' : '"<" begins no tag';
  return [{ kind: 'unknown', reason: begun }, text.length];
}

function endOf(text: string, sign: string, from: number): number {
  const found = text.indexOf(sign, from);
  return found === -1 ? text.length : found;
}
