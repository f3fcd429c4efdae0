import { Composer, CST, type Document, Lexer, type ParsedNode, Parser, type YAMLError } from 'yaml';
import { type JsonValue, MOST_LEVELS } from '../json.ts';
import type { Finding } from './issue.ts';
import { jsonMessage, lineLookup, looksLikeJson, readSource, unclosed } from './source-text.ts';
import { type Conversion, foreignComment, jsonOf } from './yaml-value.ts';

type ParsedYaml = Document.Parsed<ParsedNode>;

/** A parsed document. */
export interface ParsedDocument {
  file: string;
  /** Absent when the text is not a single document. With findings, the part that could be parsed. */
  value: JsonValue | undefined;
  findings: Finding[];
  /**
   * The position of the value, or key, at an RFC 6901 pointer, starting at 1; `undefined` where the text has no such
   * value.
   */
  position(pointer: string, part?: 'key' | 'value'): { line: number; column: number } | undefined;
  /** The source text of the value at a pointer. */
  sourceText(pointer: string): string | undefined;
}

/** Maximum number of tokens: 16,000 keys have some 112,000. */
const MAX_LEXEMES = 250_000;
const MAX_FINDINGS = 100;
/** A text with more syntax errors is taken for something other than YAML. */
const MOST_SYNTAX_ERRORS = 10;

/** Parses YAML 1.2 or JSON. Never throws because of the content: every problem is a finding with its position. */
export function parseDocument(source: string | Uint8Array, file: string): ParsedDocument {
  const read = readSource(source);
  if ('problem' in read) return unreadable(file, read.text, [{ offset: read.offset, message: read.problem }]);
  const { text } = read;
  const composed = compose(text);
  if ('problem' in composed) return unreadable(file, text, [{ offset: composed.offset, message: composed.problem }]);
  const [document, second] = composed.documents;
  if (!document) return unreadable(file, text, [{ offset: 0, message: 'the document is empty' }]);
  const problems = [...document.errors, ...document.warnings];
  if (problems.length > 0) {
    return unreadable(file, text, syntaxProblems(text, problems));
  }
  if (document.contents === null) return unreadable(file, text, [{ offset: 0, message: 'the document is empty' }]);
  if (second) {
    const offset = second.range?.[0] ?? 0;
    return unreadable(file, text, [{ offset, message: 'a second document starts here; a file may contain only one' }]);
  }
  if (document.directives?.yaml.version !== '1.2') {
    return unreadable(file, text, [{ offset: 0, message: 'the document declares a version other than YAML 1.2' }]);
  }
  return readable(file, text, jsonOf(document.contents));
}

/** The first two documents, or why parsing stopped. */
function compose(text: string): { documents: ParsedYaml[] } | { problem: string; offset: number } {
  const guard = new DepthGuard();
  let parts = 0;
  let problem: string | undefined;
  function* tokens(): Generator<CST.Token, void> {
    const parser = new Parser();
    for (const lexeme of new Lexer().lex(text)) {
      parts += 1;
      if (parts > MAX_LEXEMES) problem = 'the document has too many parts';
      else if (!guard.accepts(lexeme)) problem = 'the document is nested too deeply';
      // The rest is dropped: nothing of it reaches the composer.
      if (problem !== undefined) return;
      yield* parser.next(lexeme);
    }
    yield* parser.end();
  }
  // The composer's own check for duplicate keys is quadratic; the conversion uses a set.
  const composer = new Composer({ uniqueKeys: false, logLevel: 'silent' });
  const documents: ParsedYaml[] = [];
  for (const document of composer.compose(tokens())) {
    documents.push(document);
    if (documents.length === 2) break;
  }
  return problem === undefined ? { documents } : { problem, offset: guard.offset };
}

/**
 * Why a text is too much for a parser of YAML, which would take minutes or the whole stack for it: a clause, undefined when it is not.
 * @param most tokens
 */
export function tooMuchYaml(text: string, most = MAX_LEXEMES): string | undefined {
  const guard = new DepthGuard();
  let parts = 0;
  for (const lexeme of new Lexer().lex(text)) {
    parts += 1;
    if (parts > most) return 'it has too many parts';
    if (!guard.accepts(lexeme)) return 'it is nested too deeply';
  }
  return undefined;
}

function readable(file: string, text: string, { value, places, problems }: Conversion): ParsedDocument {
  const lookup = lineLookup(text);
  return {
    file,
    value,
    findings: atMost(problems).map(({ offset, pointer, message }) => ({ file, ...lookup(offset), pointer, message })),
    position(pointer, part = 'value') {
      const place = places.get(pointer);
      if (!place) return undefined;
      return lookup(part === 'key' ? (place.key ?? place.start) : place.start);
    },
    sourceText(pointer) {
      const place = places.get(pointer);
      return place && text.slice(place.start, place.end).trimEnd();
    },
  };
}

function unreadable(
  file: string,
  text: string,
  problems: readonly { offset: number; message: string }[],
): ParsedDocument {
  const lookup = lineLookup(text);
  return {
    file,
    value: undefined,
    findings: atMost(problems).map(({ offset, message }) => ({ file, ...lookup(offset), pointer: '', message })),
    position: () => undefined,
    sourceText: () => undefined,
  };
}

function atMost<T>(problems: readonly T[]): readonly T[] {
  return problems.slice(0, MAX_FINDINGS);
}

/**
 * In JSON a single missing character causes several YAML errors; only the first is meaningful. So it is in a text that has more of them
 * than a person makes.
 */
function syntaxProblems(text: string, problems: readonly YAMLError[]): { offset: number; message: string }[] {
  const json = looksLikeJson(text);
  const otherText = !json && problems.length > MOST_SYNTAX_ERRORS;
  const more = otherText ? `, and ${problems.length - 1} more syntax errors; is this file YAML?` : '';
  return (json || otherText ? problems.slice(0, 1) : problems).map((problem) => ({
    offset: problem.pos[0],
    message: `${(json ? jsonMessage(problem) : undefined) ?? yamlMessage(problem, text)}${more}`,
  }));
}

/** The parser's message without what it quotes: a password that starts with `!` parses as a tag. */
function yamlMessage({ code, message, pos }: YAMLError, text: string): string {
  switch (code) {
    case 'TAG_RESOLVE_FAILED':
      return 'unknown tag; "!" starts a tag';
    case 'BAD_DQ_ESCAPE':
      return 'invalid escape sequence';
    case 'BAD_DIRECTIVE':
      return 'unknown directive; "%" starts a directive';
    case 'TAB_AS_INDENT':
      return 'tabs are not allowed as indentation; use spaces';
    case 'BAD_SCALAR_START':
      return 'a value cannot start with this character; quote the value';
    case 'MULTILINE_IMPLICIT_KEY':
      // A comment in a line of its own is the beginning of the key below.
      return foreignComment(text.slice(pos[0], pos[0] + 2)) ?? firstWords(message);
    case 'MISSING_CHAR':
    case 'BAD_INDENT':
      if (/with an? [}\]]|closing ["']quote/.test(message)) return unclosed(message);
      return firstWords(message);
    default:
      return firstWords(message);
  }
}

function firstWords(message: string): string {
  const [words = ''] = message.split(/(?<=\S): /, 1);
  // The parser's messages start with a capital; ours follow a colon.
  return words.charAt(0).toLowerCase() + words.slice(1);
}

/**
 * Checks the tokens of a document for excessive nesting before it is composed: composing recurses, and a hundred
 * kilobytes of `[` would overflow the stack inside a regular expression and end the process.
 */
class DepthGuard {
  /** Offset of the next token in the text. */
  offset = 0;
  readonly #columns: number[] = [];
  #flow = 0;
  #lineStart = 0;
  #first = true;

  /** False when the token is nested too deeply; `offset` is then its position. */
  accepts(lexeme: string): boolean {
    // Marks inserted by the lexer, which are not in the text.
    if (lexeme === CST.DOCUMENT || lexeme === CST.FLOW_END || lexeme === CST.SCALAR) return true;
    const type = CST.tokenType(lexeme);
    if (type === 'flow-map-start' || type === 'flow-seq-start') this.#flow += 1;
    else if (type === 'flow-map-end' || type === 'flow-seq-end') this.#flow = Math.max(0, this.#flow - 1);
    else if (this.#flow === 0 && opensBlock(type, this.#first)) this.#enter(this.offset - this.#lineStart);
    if (this.#flow + this.#columns.length > MOST_LEVELS) return false;
    this.offset += lexeme.length;
    if (lexeme.includes('\n')) {
      this.#lineStart = this.offset;
      this.#first = true;
    } else if (type !== 'space') {
      this.#first = false;
    }
    return true;
  }

  /** A block begins at a column and ends where something begins at or before that column. */
  #enter(column: number): void {
    while ((this.#columns.at(-1) ?? -1) >= column) this.#columns.pop();
    this.#columns.push(column);
  }
}

function opensBlock(type: CST.TokenType | null, first: boolean): boolean {
  if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') return true;
  return first && type !== 'space' && type !== 'newline' && type !== 'comment';
}

/**
 * The finding with file, line and column: of the value at its pointer, of its key for `key`, or of the nearest parent
 * present in the document.
 */
export function positioned<T extends Finding>(
  document: ParsedDocument,
  finding: T,
  part: 'key' | 'value' = 'value',
): T {
  let pointer = finding.pointer;
  let place = document.position(pointer, part);
  while (!place && pointer !== '') {
    pointer = pointer.slice(0, pointer.lastIndexOf('/'));
    place = document.position(pointer, 'key');
  }
  return { file: document.file, ...(place ?? {}), ...finding };
}
