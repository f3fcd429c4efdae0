import { Composer, CST, type Document, Lexer, type ParsedNode, Parser, type YAMLError } from 'yaml';
import { type JsonValue, MOST_LEVELS } from '../json.ts';
import type { Finding } from './issue.ts';
import { jsonMessage, lineLookup, looksLikeJson, readSource, unclosedText } from './source-text.ts';
import { type Conversion, foreignComment, jsonOf } from './yaml-value.ts';

type ParsedYaml = Document.Parsed<ParsedNode>;

/** A parsed document. */
export interface ParsedDocument {
  file: string;
  /** Absent if the text is not a single document. With findings, the part that could be parsed. */
  value: JsonValue | undefined;
  findings: Finding[];
  /** Returns the position of the value, or key, at an RFC 6901 pointer, starting at 1, or undefined if the text has no such value. */
  position(pointer: string, part?: 'key' | 'value'): { line: number; column: number } | undefined;
  /** Returns the source text of the value at a pointer. */
  sourceText(pointer: string): string | undefined;
}

/** Maximum number of tokens: 16,000 keys have some 112,000. */
const MAX_LEXEMES = 250_000;
/** Tokens that may be open at once: the document, and one of each level. */
const MOST_OPEN = MOST_LEVELS + 1;
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

/** Returns the first two documents, or the reason that parsing stopped. */
function compose(text: string): { documents: ParsedYaml[] } | { problem: string; offset: number } {
  const source = tokensOf(text);
  // The composer's own check for duplicate keys is quadratic; the conversion uses a set.
  const composer = new Composer({ uniqueKeys: false, logLevel: 'silent' });
  const documents: ParsedYaml[] = [];
  for (const document of composer.compose(source.tokens)) {
    documents.push(document);
    if (documents.length === 2) break;
  }
  const { problem } = source;
  return problem === undefined ? { documents } : { problem: `the document ${problem}`, offset: source.offset };
}

/**
 * Returns the reason, as a clause, that a text is too much for the YAML parser, which would take minutes or overflow the stack, or undefined if it is
 * not.
 * @param most tokens
 */
export function tooMuchYaml(text: string, most = MAX_LEXEMES): string | undefined {
  const source = tokensOf(text, most);
  for (const _ of source.tokens);
  return source.problem === undefined ? undefined : `it ${source.problem}`;
}

interface TokenSource {
  tokens: Iterable<CST.Token>;
  /** Set where the tokens end early, because the rest would be too much: a clause without its subject, and the offset. */
  problem?: string;
  offset: number;
}

/**
 * Yields the tokens of a text. They end before one that is nested too deeply, as the parser itself counts it: parsing and composing recurse, and a
 * hundred kilobytes of `[` would overflow the stack inside a regular expression and end the process.
 */
function tokensOf(text: string, most = MAX_LEXEMES): TokenSource {
  const source: TokenSource = { tokens: read(), offset: 0 };
  return source;

  function* read(): Generator<CST.Token, void> {
    const parser = new Parser();
    let parts = 0;
    for (const lexeme of new Lexer().lex(text)) {
      parts += 1;
      if (parts > most) source.problem = 'has too many parts';
      // The rest is dropped: nothing of it reaches the composer.
      if (source.problem !== undefined) return;
      yield* parser.next(lexeme);
      if (parser.stack.length > MOST_OPEN) {
        source.problem = 'is nested too deeply';
        return;
      }
      // Others are marks of the lexer, which are not in the text.
      if (lexeme !== CST.DOCUMENT && lexeme !== CST.FLOW_END && lexeme !== CST.SCALAR) source.offset += lexeme.length;
    }
    yield* parser.end();
  }
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
 * Selects the syntax problems to report. In JSON, or in a text with more errors than a person makes, only the first is meaningful: a single missing
 * character causes several YAML errors.
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

/** Returns the parser's message without quoted text: a password that starts with `!` parses as a tag. */
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
      if (/with an? [}\]]|closing ["']quote/.test(message)) return unclosedText(message);
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

/** Adds file, line and column to a finding: of the value at its pointer, of its key for `key`, or of the nearest parent present in the document. */
export function locateInDocument<T extends Finding>(
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
