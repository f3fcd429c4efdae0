import { MOST_LEVELS } from '../json.ts';
import { quotedName } from '../settings/printable.ts';
import { type PlistToken, plistTokens } from './plist-tokens.ts';

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
