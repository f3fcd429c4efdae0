import { MOST_LEVELS } from '../json.ts';
import { plistTokens } from './plist-tokens.ts';

/** No document may bring names of its own. */
const BAD_REFERENCE = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)/;
const NUMBERED = /&#(x?)([0-9A-Fa-f]+);/gi;
const VALUES = new Set(['dict', 'array', 'string', 'integer', 'real', 'true', 'false', 'date', 'data']);
const TEXTS = new Set(['key', 'string', 'integer', 'real', 'date', 'data']);

/** A dictionary that is open, with what comes next in it. */
interface Level {
  tag: string;
  keys?: Set<string>;
  awaitsValue?: boolean;
}

/**
 * Why a text in XML is no property list that can be relied on, as a clause; `undefined` when it may be parsed. Parsers pass over
 * more than they should: a key without a value, a key twice, letters in a number.
 */
export function plistProblem(text: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of them.
  if (/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.test(text)) return 'it has a sign that XML cannot have';
  const open: Level[] = [];
  let content = '';
  let complete = false;
  for (const token of plistTokens(text)) {
    const inText = TEXTS.has(open.at(-1)?.tag ?? '');
    switch (token.kind) {
      case 'comment':
        continue;
      case 'unknown':
        return token.reason ?? `${quoted(token.text)} is no tag of a property list`;
      case 'declaration':
        if (open.length > 0) return 'a declaration stands where none belongs';
        continue;
      case 'characters':
        if (!inText) return 'a text stands between values';
        content += token.text;
        continue;
      case 'text': {
        content += token.text;
        const reference = BAD_REFERENCE.exec(token.text);
        if (reference) return `${quoted(token.text.slice(reference.index))} refers to nothing that is known`;
        if (!allSigns(token.text)) return 'it refers to a sign that XML cannot have';
        if (!inText && token.text.trim() !== '') return `the text ${quoted(token.text)} stands between values`;
        continue;
      }
      case 'tag': {
        const { tag } = token;
        if (token.end) {
          const level = open.pop();
          if (level?.tag !== tag) return `</${tag}> closes nothing`;
          const problem = endProblem(level, content, open.at(-1));
          if (problem) return problem;
          complete ||= open.length === 0;
          content = '';
          continue;
        }
        if (complete) return 'something follows the end of the list';
        const problem = beginProblem(tag, open.at(-1));
        if (problem) return problem;
        content = '';
        if (token.empty) {
          const end = endProblem({ tag }, '', open.at(-1));
          if (end) return end;
        } else {
          open.push(tag === 'dict' ? { tag, keys: new Set() } : { tag });
          if (open.length > MOST_LEVELS) return `it nests deeper than ${MOST_LEVELS} levels`;
        }
      }
    }
  }
  const left = open.at(-1);
  if (left) return `<${left.tag}> is not closed`;
  return complete ? undefined : 'it is empty';
}

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
  if (tag !== 'key' && !VALUES.has(tag)) return `<${tag}> is no tag of a property list`;
  if (TEXTS.has(above.tag)) return `<${tag}> stands inside <${above.tag}>`;
  if (above.keys === undefined) return tag === 'key' ? '<key> stands outside of <dict>' : undefined;
  if (above.awaitsValue) return tag === 'key' ? `the key ${quoted(lastKey(above))} has no value` : undefined;
  return tag === 'key' ? undefined : `<${tag}> has no key`;
}

function endProblem(level: Level, content: string, above: Level | undefined): string | undefined {
  if (level.awaitsValue) return `the key ${quoted(lastKey(level))} has no value`;
  if (level.tag === 'integer' && !/^\s*[+-]?\d{1,20}\s*$/.test(content)) return `${quoted(content)} is no integer`;
  if (level.tag === 'real' && !/^\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*$/.test(content))
    return `${quoted(content)} is no number`;
  if (above?.keys === undefined) return undefined;
  if (level.tag !== 'key') {
    above.awaitsValue = false;
    return undefined;
  }
  if (above.keys.has(content)) return `the key ${quoted(content)} stands twice in one dictionary`;
  above.keys.add(content);
  above.awaitsValue = true;
  return undefined;
}

function lastKey({ keys }: Level): string {
  return [...(keys ?? [])].at(-1) ?? '';
}

function quoted(text: string): string {
  const short = text.trim();
  return JSON.stringify(short.length > 40 ? `${short.slice(0, 40)}…` : short);
}
