import { MOST_LEVELS } from '../../src/json.ts';
import { quoteName } from '../../src/settings/printable.ts';
import { xmlProblem } from './xml.ts';

/** A value in a property list. Dictionaries are maps, because any text may be a key, even `__proto__`. */
export type PlistValue = boolean | number | string | readonly PlistValue[] | PlistDictionary | UnsupportedValue;
export type PlistDictionary = ReadonlyMap<string, PlistValue>;
/** A value of a type that no setting can have. */
export interface UnsupportedValue {
  /** Name of the type with its article: `a date`. */
  other: string;
}

export function isDictionary(value: PlistValue | undefined): value is PlistDictionary {
  return value instanceof Map;
}

export function isUnsupported(value: PlistValue): value is UnsupportedValue {
  return typeof value === 'object' && 'other' in value;
}

/**
 * Parses an XML property list. The library `plist` accepts keys without a value, duplicate keys and letters in numbers, rejects a key such
 * as `__proto__`, quotes values in its messages, and would be a quarter of the code that `import-profile` loads.
 * @throws Error with a clause that describes the problem and the line. It only quotes keys and tag names, because a value may be a secret.
 */
export function xmlPlist(text: string): PlistValue {
  return new Reader(text).document();
}

const BAD_CHARACTER = 'it has a character that XML does not allow';
// biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of them.
const BAD_CHARACTERS = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;
/** Matches other references than the predefined ones; entity declarations in documents are not supported. */
const BAD_REFERENCE = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)/;
const REFERENCE = /&(?:#(x?)([0-9A-Fa-f]+)|([a-z]+));/g;
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
/** Matches anything but XML white space, which has fewer characters than that of JavaScript. */
const NO_BLANK = /[^ \t\r\n]/;
const MARKUP =
  /<!--[\s\S]*?-->|<!\[CDATA\[(?<characters>[\s\S]*?)\]\]>|<\?[\s\S]*?\?>|<!DOCTYPE[^<>[\]]*>|<(?<end>\/?)(?<name>[A-Za-z]+)(?:\s[^<>]*?)?(?<empty>\/?)>/y;
const NO_MARKUP = 'a "<" starts nothing that is allowed in a property list, or something that does not end';
const VALUES = new Set(['dict', 'array', 'string', 'integer', 'real', 'true', 'false', 'date', 'data']);
const MAX_TAG = 40;

interface Tag {
  name: string;
  /** Offset of the tag's first character. */
  at: number;
  end: boolean;
  /** Whether the tag is self-closing. */
  empty: boolean;
  /** The decoded text between the previous tag and this one. */
  text: string;
}

/** A recursive descent parser with limited nesting. Each character is visited a fixed number of times. */
class Reader {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  document(): PlistValue {
    const bad = this.text.search(BAD_CHARACTERS);
    if (bad !== -1) this.fail(BAD_CHARACTER, bad);
    const list = this.next(false);
    if (!list) return this.fail('it is empty', this.at);
    if (list.name !== 'plist' || list.end) this.fail('it does not begin with <plist>', list.at);
    const first = list.empty ? undefined : this.nextIn(list);
    if (!first || first.end) return this.fail('it is empty', list.at);
    const value = this.value(first, 1);
    const end = this.nextIn(list);
    if (!end.end) this.fail('it has more than one value', end.at);
    this.close(list, end);
    const more = this.next(false);
    return more ? this.fail('unexpected content after the end of the list', more.at) : value;
  }

  private value(tag: Tag, level: number): PlistValue {
    const { name, at } = tag;
    if (name === 'key') this.fail('<key> is outside of <dict>', at);
    if (!VALUES.has(name)) this.fail(`<${shorten(name)}> is not a tag of a property list`, at);
    if (name !== 'dict' && name !== 'array') return this.scalar(tag);
    if (level >= MOST_LEVELS) this.fail(`it nests deeper than ${MOST_LEVELS} levels`, at);
    return name === 'dict' ? this.dictionary(tag, level) : this.array(tag, level);
  }

  private dictionary(open: Tag, level: number): PlistDictionary {
    const entries = new Map<string, PlistValue>();
    for (let tag = this.child(open); tag; tag = this.child(open)) {
      if (tag.name !== 'key') this.fail(`<${shorten(tag.name)}> has no key`, tag.at);
      const key = this.content(tag);
      if (entries.has(key)) this.fail(`the key ${quoteName(key)} appears twice in one dictionary`, tag.at);
      const value = this.nextIn(open);
      if (value.end || value.name === 'key') this.fail(`the key ${quoteName(key)} has no value`, value.at);
      entries.set(key, this.value(value, level + 1));
    }
    return entries;
  }

  private array(open: Tag, level: number): PlistValue[] {
    const items: PlistValue[] = [];
    for (let tag = this.child(open); tag; tag = this.child(open)) items.push(this.value(tag, level + 1));
    return items;
  }

  private scalar(tag: Tag): PlistValue {
    const { name, at } = tag;
    const content = this.content(tag);
    switch (name) {
      case 'integer':
        if (!/^\s*[+-]?\d{1,20}\s*$/.test(content)) this.fail('<integer> does not contain an integer', at);
        return numberOf(Number.parseInt(content, 10));
      case 'real':
        if (!/^\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*$/.test(content)) {
          this.fail('<real> does not contain a number', at);
        }
        return numberOf(Number.parseFloat(content));
      case 'date':
        return { other: 'a date' };
      case 'data':
        return { other: 'data' };
      case 'string':
        return content;
      default:
        if (content !== '') this.fail(`<${name}> is not empty`, at);
        return name === 'true';
    }
  }

  /** Returns the text of an element without child elements. Does not quote an unexpected tag, which may be part of a secret. */
  private content(open: Tag): string {
    if (open.empty) return '';
    const tag = this.next(true);
    if (!tag) return this.fail(`<${open.name}> is not closed`, open.at);
    if (!tag.end || tag.name !== open.name) this.fail(`<${open.name}> contains a tag, or is not closed`, tag.at);
    return tag.text;
  }

  /** Returns the tag of the next element inside; undefined at the end. */
  private child(open: Tag): Tag | undefined {
    if (open.empty) return undefined;
    const tag = this.nextIn(open);
    if (!tag.end) return tag;
    this.close(open, tag);
    return undefined;
  }

  private nextIn(open: Tag): Tag {
    return this.next(false) ?? this.fail(`<${open.name}> is not closed`, open.at);
  }

  private close(open: Tag, { name, at }: Tag): void {
    if (name !== open.name) this.fail(`</${shorten(name)}> has no opening tag`, at);
  }

  /** Returns the next tag; undefined at the end. Skips comments and declarations. */
  private next(mayFollowText: boolean): Tag | undefined {
    const pieces: string[] = [];
    const add = (piece: string, at: number) => {
      if (!mayFollowText && NO_BLANK.test(piece)) {
        this.fail('there is text between values', at + Math.max(0, this.text.slice(at).search(NO_BLANK)));
      }
      pieces.push(piece);
    };
    while (this.at < this.text.length) {
      const { at } = this;
      if (this.text[at] !== '<') {
        const end = this.text.indexOf('<', at);
        this.at = end === -1 ? this.text.length : end;
        add(this.resolved(at), at);
        continue;
      }
      MARKUP.lastIndex = at;
      const { name, end, empty, characters } = MARKUP.exec(this.text)?.groups ?? this.fail(NO_MARKUP, at);
      this.at = MARKUP.lastIndex;
      if (name !== undefined) return { name, at, end: end !== '', empty: empty !== '', text: pieces.join('') };
      if (characters !== undefined) add(withLineFeeds(characters), at);
    }
    return undefined;
  }

  /** Returns the text up to this offset, with references decoded. */
  private resolved(from: number): string {
    const text = this.text.slice(from, this.at);
    const bad = BAD_REFERENCE.exec(text);
    if (bad) this.fail('a "&" starts no known entity', from + bad.index);
    return withLineFeeds(text).replace(REFERENCE, (_, hexadecimal, digits, name) => {
      if (digits === undefined) return NAMED[name] ?? '';
      const code = Number.parseInt(digits, hexadecimal === 'x' ? 16 : 10);
      const char = code <= 0x10ffff ? String.fromCodePoint(code) : '\0';
      // References to numbers that are not XML characters are rejected, because parsers differ in how they treat them.
      return xmlProblem(char) === undefined ? char : this.fail(BAD_CHARACTER, from);
    });
  }

  private fail(reason: string, at: number): never {
    throw new Error(`${reason} (line ${this.text.slice(0, at).split('\n').length})`);
  }
}

function withLineFeeds(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}

function shorten(tag: string): string {
  return tag.slice(0, MAX_TAG);
}

/** Converts a number to one that JSON can represent. Integers of more than 53 bits lose precision, as in JSON; no setting needs them. */
export function numberOf(value: number): number | UnsupportedValue {
  return Number.isFinite(value) ? value : { other: 'not a finite number' };
}
