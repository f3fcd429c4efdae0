import { Composer, CST, type Document, Lexer, type ParsedNode, Parser, type YAMLError } from 'yaml';
import { type JsonValue, MOST_LEVELS } from '../json.ts';
import type { Finding } from './finding.ts';
import { jsonWords, looksLikeJson } from './json-words.ts';
import { lineLookup, readSource } from './source-text.ts';
import { type Conversion, jsonOf } from './yaml-value.ts';

type ParsedYaml = Document.Parsed<ParsedNode>;

/** A document as it was read. */
export interface ParsedDocument {
  file: string;
  /** Absent when the text could not be read as one document. With findings it is what could be understood. */
  value: JsonValue | undefined;
  findings: Finding[];
  /** Where the value at an RFC 6901 pointer begins, or its key; `undefined` where the text has no such value. From 1. */
  position(pointer: string, part?: 'key' | 'value'): { line: number; column: number } | undefined;
  /** The value at a pointer as it is written. */
  sourceText(pointer: string): string | undefined;
}

/** Lexical parts of a document that are looked at: 16,000 keys have some 112,000. */
const MOST_LEXEMES = 250_000;
const MOST_FINDINGS = 100;

/** Reads YAML 1.2 or JSON. Never throws for what a document contains: everything wrong is a finding with its position. */
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
    return unreadable(file, text, [{ offset, message: 'a second document begins here; a file holds one' }]);
  }
  if (document.directives?.yaml.version !== '1.2') {
    return unreadable(file, text, [{ offset: 0, message: 'the document says that it is not YAML 1.2' }]);
  }
  return readable(file, text, jsonOf(document.contents));
}

/** The first two documents, or why the text is not looked at any further. */
function compose(text: string): { documents: ParsedYaml[] } | { problem: string; offset: number } {
  const guard = new DepthGuard();
  let parts = 0;
  let problem: string | undefined;
  function* tokens(): Generator<CST.Token, void> {
    const parser = new Parser();
    for (const lexeme of new Lexer().lex(text)) {
      parts += 1;
      if (parts > MOST_LEXEMES) problem = 'the document has too many parts';
      else if (!guard.accepts(lexeme)) problem = 'the document is nested too deeply';
      // What was read of the document so far is dropped: nothing of it reaches the composer.
      if (problem !== undefined) return;
      yield* parser.next(lexeme);
    }
    yield* parser.end();
  }
  // The composer's own search for duplicate keys is quadratic; the conversion does it with a set.
  const composer = new Composer({ uniqueKeys: false, logLevel: 'silent' });
  const documents: ParsedYaml[] = [];
  for (const document of composer.compose(tokens())) {
    documents.push(document);
    if (documents.length === 2) break;
  }
  return problem === undefined ? { documents } : { problem, offset: guard.offset };
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
  return problems.slice(0, MOST_FINDINGS);
}

/** In JSON one missing sign makes several errors of YAML; the first is the one that is there. */
function syntaxProblems(text: string, problems: readonly YAMLError[]): { offset: number; message: string }[] {
  const json = looksLikeJson(text);
  return (json ? problems.slice(0, 1) : problems).map((problem) => ({
    offset: problem.pos[0],
    message: (json ? jsonWords(problem) : undefined) ?? yamlWords(problem),
  }));
}

/** What the parser says, without what it quotes: a password that begins with `!` is a tag to it. */
function yamlWords({ code, message }: YAMLError): string {
  switch (code) {
    case 'TAG_RESOLVE_FAILED':
      return 'a "!" begins a tag here, and the tag is not known';
    case 'BAD_DQ_ESCAPE':
      return 'this is no escape sequence';
    case 'BAD_DIRECTIVE':
      return 'a "%" begins a directive here, and the directive is not known';
    case 'BAD_SCALAR_START':
      return 'a value cannot begin with this sign; put it between quotation marks';
    default: {
      const [words = ''] = message.split(/(?<=\S): /, 1);
      // The parser's messages begin with a capital; ours follow a colon.
      return words.charAt(0).toLowerCase() + words.slice(1);
    }
  }
}

/**
 * Watches the lexical parts of a document pass by and says when it nests deeper than any settings do. That must be known
 * before the document is composed, because composing recurses: a hundred kilobytes of `[` would exhaust the stack inside a
 * regular expression and end the process.
 */
class DepthGuard {
  /** Offset of the next part in the text. */
  offset = 0;
  readonly #columns: number[] = [];
  #flow = 0;
  #lineStart = 0;
  #first = true;

  /** False when the part is too deep; `offset` is then its place. */
  accepts(lexeme: string): boolean {
    // Marks that the lexer inserts; they are not in the text.
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

  /** A block begins at a column and ends where something begins at that column or before it. */
  #enter(column: number): void {
    while ((this.#columns.at(-1) ?? -1) >= column) this.#columns.pop();
    this.#columns.push(column);
  }
}

function opensBlock(type: CST.TokenType | null, first: boolean): boolean {
  if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') return true;
  return first && type !== 'space' && type !== 'newline' && type !== 'comment';
}
