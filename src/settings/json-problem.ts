import { quoteName } from './printable.ts';
import { lineLookup } from './source-text.ts';

/** The reason that a text is not unambiguous JSON, as a clause, with the position counted from 1. */
export interface JsonProblem {
  line: number;
  column: number;
  message: string;
  /** The text ends early, as if it had been cut off. */
  isCut: boolean;
}

/** The problem reported for a comment. */
export const COMMENTS = 'comments are not allowed in JSON';

const BLANKS = /[ \t\r\n]*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.+-])/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;

/**
 * Returns the first error in a JSON text, or undefined. A duplicate key counts as an error, because a person may read it differently from a parser.
 * The message quotes keys but never values, which may be passwords.
 */
export function jsonProblem(text: string): JsonProblem | undefined {
  const reading = new Reading(text);
  const message = reading.document();
  return message === undefined ? undefined : { ...lineLookup(text)(reading.at), message, isCut: reading.isCut };
}

/** Iterative, because nesting may be too deep for the stack. */
class Reading {
  at = 0;
  isCut = false;
  private readonly text: string;
  /** Keys of the enclosing objects; `undefined` stands for a list. */
  private readonly open: (Set<string> | undefined)[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /** Returns the first problem of the document, leaving its offset in `at`, or undefined. */
  document(): string | undefined {
    let expectedToken: 'value' | 'key' | 'end' = 'value';
    /** After an opening bracket, where a closing one is valid. */
    let first = false;
    for (;;) {
      this.skip(BLANKS);
      const char = this.text[this.at];
      const inside = this.open.length > 0;
      const keys = this.open.at(-1);
      const close = keys ? '}' : ']';
      if (expectedToken === 'end' && !inside)
        return char === undefined ? undefined : this.unexpected('unexpected content after the end');
      if (inside && char === close && (expectedToken === 'end' || first)) {
        this.open.pop();
        this.at += 1;
        [expectedToken, first] = ['end', false];
      } else if (expectedToken === 'end') {
        if (char !== ',') return this.unexpected(`a "," or a "${close}" is missing`);
        this.at += 1;
        expectedToken = keys ? 'key' : 'value';
      } else if (inside && char === close) return `a "," comes before the "${close}"`;
      else if (expectedToken === 'key') {
        if (char !== '"') return this.unexpected('a key in double quotation marks is missing');
        const problem = this.key(keys);
        if (problem !== undefined) return problem;
        [expectedToken, first] = ['value', false];
      } else if (char === '{' || char === '[') {
        this.open.push(char === '{' ? new Set() : undefined);
        this.at += 1;
        [expectedToken, first] = [char === '{' ? 'key' : 'value', true];
      } else {
        const problem = char === '"' ? this.string() : this.scalar();
        if (problem !== undefined) return problem;
        [expectedToken, first] = ['end', false];
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
      return `the key ${quoteName(key)} appears twice in one object`;
    }
    keys?.add(key);
    this.skip(BLANKS);
    if (this.text[this.at] !== ':') return this.unexpected('a ":" is missing');
    this.at += 1;
    return undefined;
  }

  /** Character by character, because a regular expression would exhaust the stack on a long text. */
  private string(): string | undefined {
    const start = this.at;
    for (this.at += 1; this.at < this.text.length; this.at += 1) {
      const char = this.text[this.at] ?? '';
      if (char === '"') {
        this.at += 1;
        return undefined;
      }
      if (char < ' ') return 'a string has a line break or a control character in it';
      if (char !== '\\') continue;
      if (!this.skip(ESCAPE)) return 'invalid escape sequence';
      this.at -= 1;
    }
    this.at = start;
    this.isCut = true;
    return 'a string is not closed: a quotation mark is missing';
  }

  private scalar(): string | undefined {
    return this.skip(SCALAR) ? undefined : this.unexpected('a value is missing or invalid');
  }

  private unexpected(otherwise: string): string {
    const char = this.text[this.at];
    this.isCut = char === undefined;
    if (this.isCut) return `the text ends here: ${otherwise}`;
    return char === '/' || char === '#' ? COMMENTS : otherwise;
  }

  private skip(expression: RegExp): boolean {
    expression.lastIndex = this.at;
    const found = expression.exec(this.text)?.[0];
    this.at += found?.length ?? 0;
    return found !== undefined;
  }
}
