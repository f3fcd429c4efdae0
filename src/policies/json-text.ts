import { quotedName } from '../settings/printable.ts';
import { lineLookup } from '../settings/source-text.ts';

/** What keeps a text from being JSON that says one thing, as a clause, and where; counted from 1. */
export interface JsonProblem {
  line: number;
  column: number;
  message: string;
}

const BLANKS = /[ \t\r\n]*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.+-])/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;

/**
 * The first mistake in a text that should be JSON; `undefined` when it has none. A key that stands twice in one object is one: it
 * means one thing to a person and another to a parser. What the text holds is not quoted, because it may be a password; keys are.
 */
export function jsonProblem(text: string): JsonProblem | undefined {
  const reading = new Reading(text);
  const message = reading.document();
  return message === undefined ? undefined : { ...lineLookup(text)(reading.at), message };
}

/** Nothing in it calls itself, because a text may nest deeper than a program can. */
class Reading {
  at = 0;
  private readonly text: string;
  /** Keys of the objects that are open; `undefined` stands for a list. */
  private readonly open: (Set<string> | undefined)[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /** The problem that stands at `at`. */
  document(): string | undefined {
    let wanted: 'value' | 'key' | 'end' = 'value';
    /** Behind the opening bracket, where the closing one may stand. */
    let first = false;
    for (;;) {
      this.skip(BLANKS);
      const sign = this.text[this.at];
      const inside = this.open.length > 0;
      const keys = this.open.at(-1);
      const close = keys ? '}' : ']';
      if (wanted === 'end' && !inside)
        return sign === undefined ? undefined : this.unexpected('something follows the end');
      if (inside && sign === close && (wanted === 'end' || first)) {
        this.open.pop();
        this.at += 1;
        [wanted, first] = ['end', false];
      } else if (wanted === 'end') {
        if (sign !== ',') return this.unexpected(`a "," or a "${close}" is missing`);
        this.at += 1;
        wanted = keys ? 'key' : 'value';
      } else if (inside && sign === close) return `a "," stands in front of the "${close}"`;
      else if (wanted === 'key') {
        if (sign !== '"') return this.unexpected('a key in double quotation marks is missing');
        const problem = this.key(keys);
        if (problem !== undefined) return problem;
        [wanted, first] = ['value', false];
      } else if (sign === '{' || sign === '[') {
        this.open.push(sign === '{' ? new Set() : undefined);
        this.at += 1;
        [wanted, first] = [sign === '{' ? 'key' : 'value', true];
      } else {
        const problem = sign === '"' ? this.string() : this.scalar();
        if (problem !== undefined) return problem;
        [wanted, first] = ['end', false];
      }
    }
  }

  private key(keys: Set<string> | undefined): string | undefined {
    const start = this.at;
    const problem = this.string();
    if (problem !== undefined) return problem;
    const key = String(JSON.parse(this.text.slice(start, this.at)));
    if (keys?.has(key)) {
      this.at = start;
      return `the key ${quotedName(key)} stands twice in one object`;
    }
    keys?.add(key);
    this.skip(BLANKS);
    if (this.text[this.at] !== ':') return this.unexpected('a ":" is missing');
    this.at += 1;
    return undefined;
  }

  /** Sign by sign, because an expression runs out of stack in a long text. */
  private string(): string | undefined {
    const start = this.at;
    for (this.at += 1; this.at < this.text.length; this.at += 1) {
      const sign = this.text[this.at] ?? '';
      if (sign === '"') {
        this.at += 1;
        return undefined;
      }
      if (sign < ' ') return 'a text has a line end or a control character in it';
      if (sign !== '\\') continue;
      if (!this.skip(ESCAPE)) return 'this is no escape sequence';
      this.at -= 1;
    }
    this.at = start;
    return 'a text is not closed: a quotation mark is missing';
  }

  private scalar(): string | undefined {
    return this.skip(SCALAR) ? undefined : this.unexpected('a value is missing, or is none that JSON has');
  }

  private unexpected(otherwise: string): string {
    const sign = this.text[this.at];
    if (sign === undefined) return `the text ends here: ${otherwise}`;
    return sign === '/' || sign === '#' ? 'a comment begins here, and JSON has none' : otherwise;
  }

  private skip(expression: RegExp): boolean {
    expression.lastIndex = this.at;
    const found = expression.exec(this.text)?.[0];
    this.at += found?.length ?? 0;
    return found !== undefined;
  }
}
