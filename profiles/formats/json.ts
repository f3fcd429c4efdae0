import { RdError } from '../../src/errors.ts';
import { isObject, isTooDeep, type JsonObject, type JsonValue, MOST_LEVELS } from '../../src/json.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { put } from '../../src/settings/own.ts';
import { quotedName } from '../../src/settings/printable.ts';
import { lineLookup } from '../../src/settings/source-text.ts';
import { decoded, type Exporter, type Importer, partOfName } from './format.ts';
import { type DeploymentTree, isTree } from './tree.ts';

/**
 * A deployment file of Linux: bare settings as JSON. It looks like the bare settings that `rdctl apply` takes; only its
 * name, or an option, tells them apart.
 */
export const jsonImporter: Importer = {
  name: 'json',
  platform: 'linux',
  recognises(bytes) {
    if (!BEGIN.test(new TextDecoder().decode(bytes.subarray(0, 1024)))) return false;
    const value = readValue(bytes);
    return isObject(value) && !('apiVersion' in value || 'kind' in value || isObject(value.settings));
  },
  async read(bytes, label) {
    const wrong = (reason: string, details: readonly string[] = []) =>
      new RdError('ERR_PROFILE_INVALID', `${label} is not a deployment profile that can be read: ${reason}`, {
        details,
      });
    const value = jsonObject(bytes, label, wrong, 'it has a duplicate key');
    const part = partOfName(label);
    const note = `${label} begins with a byte order mark; the application does not start with such a file.`;
    const notes = hasByteOrderMark(bytes) ? { notes: [note] } : {};
    return [{ ...(part ? { part } : {}), source: label, settings: value, lost: [], ...notes }];
  },
};

/**
 * The object in a file that holds JSON and says one thing.
 * @param wrong makes the error of a reason, which is a clause, and of the line that it is about.
 * @param ambiguous the reason for a text that a parser would take.
 */
export function jsonObject(
  bytes: Uint8Array,
  file: string,
  wrong: (reason: string, details?: readonly string[]) => Error,
  ambiguous: string,
): JsonObject {
  const text = decoded(bytes);
  if (text === undefined) throw wrong('it is not UTF-8');
  if (isTooDeep(text)) throw wrong(`it nests deeper than ${MOST_LEVELS} levels`);
  const value = parsedJson(text);
  // The parser's message quotes the text, which may hold a password, and the parser takes the last of a key that stands twice.
  const problem = jsonProblem(text);
  if (problem) {
    const line = formatFinding({ file, pointer: '', ...problem });
    throw wrong(value === undefined ? 'it is not JSON' : ambiguous, [line]);
  }
  if (!isObject(value)) throw wrong('it does not contain an object');
  return value;
}

/** True for text that starts like JSON and is not valid JSON; it may be YAML. */
export function isBrokenJson(bytes: Uint8Array): boolean {
  return BEGIN.test(new TextDecoder().decode(bytes.subarray(0, 1024))) && readValue(bytes) === undefined;
}

/** True for a UTF-8 byte order mark, which this tool skips and the application rejects. */
export function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

const BEGIN = /^\s*\{/;

/** The value of a text; `undefined` where it is no JSON. */
export function parsedJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readValue(bytes: Uint8Array): JsonValue | undefined {
  const text = decoded(bytes);
  return text === undefined || isTooDeep(text) ? undefined : parsedJson(text);
}

/** A deployment profile as JSON in the order of the schema, with two spaces per level and a line end at the end. It holds any text. */
export function jsonText(tree: DeploymentTree): string {
  return `${JSON.stringify(objectOf(tree), undefined, 2)}\n`;
}

function objectOf(tree: DeploymentTree): JsonObject {
  const object: JsonObject = {};
  for (const [name, value] of tree) put(object, name, isTree(value) ? objectOf(value) : (value as JsonValue));
  return object;
}

/** A file below `/etc` of Linux. */
export const jsonExporter: Exporter = {
  name: 'json',
  platform: 'linux',
  fileName: (part) => `${part}.json`,
  text: jsonText,
};

/** What keeps a text from being JSON that says one thing, as a clause, and where; counted from 1. */
interface JsonProblem {
  line: number;
  column: number;
  message: string;
}

const BLANKS = /[ \t\r\n]*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.+-])/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;

/**
 * The first mistake in a text that should be JSON; `undefined` when it has none. A key that appears twice in one object is one: it
 * means one thing to a person and another to a parser. What the text holds is not quoted, because it may be a password; keys are.
 */
export function jsonProblem(text: string): JsonProblem | undefined {
  const reading = new Reading(text);
  const message = reading.document();
  return message === undefined ? undefined : { ...lineLookup(text)(reading.at), message };
}

/** Iterative, because a text may nest deeper than the stack. */
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
      const char = this.text[this.at];
      const inside = this.open.length > 0;
      const keys = this.open.at(-1);
      const close = keys ? '}' : ']';
      if (wanted === 'end' && !inside)
        return char === undefined ? undefined : this.unexpected('unexpected content after the end');
      if (inside && char === close && (wanted === 'end' || first)) {
        this.open.pop();
        this.at += 1;
        [wanted, first] = ['end', false];
      } else if (wanted === 'end') {
        if (char !== ',') return this.unexpected(`a "," or a "${close}" is missing`);
        this.at += 1;
        wanted = keys ? 'key' : 'value';
      } else if (inside && char === close) return `a "," comes before the "${close}"`;
      else if (wanted === 'key') {
        if (char !== '"') return this.unexpected('a key in double quotation marks is missing');
        const problem = this.key(keys);
        if (problem !== undefined) return problem;
        [wanted, first] = ['value', false];
      } else if (char === '{' || char === '[') {
        this.open.push(char === '{' ? new Set() : undefined);
        this.at += 1;
        [wanted, first] = [char === '{' ? 'key' : 'value', true];
      } else {
        const problem = char === '"' ? this.string() : this.scalar();
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
      return `the key ${quotedName(key)} appears twice in one object`;
    }
    keys?.add(key);
    this.skip(BLANKS);
    if (this.text[this.at] !== ':') return this.unexpected('a ":" is missing');
    this.at += 1;
    return undefined;
  }

  /** Character by character, because a regular expression runs out of stack on a long text. */
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
    return 'a string is not closed: a quotation mark is missing';
  }

  private scalar(): string | undefined {
    return this.skip(SCALAR) ? undefined : this.unexpected('a value is missing or invalid');
  }

  private unexpected(otherwise: string): string {
    const char = this.text[this.at];
    if (char === undefined) return `the text ends here: ${otherwise}`;
    return char === '/' || char === '#' ? 'comments are not allowed in JSON' : otherwise;
  }

  private skip(expression: RegExp): boolean {
    expression.lastIndex = this.at;
    const found = expression.exec(this.text)?.[0];
    this.at += found?.length ?? 0;
    return found !== undefined;
  }
}
