/** A syntax error of the YAML parser. */
interface SyntaxProblem {
  code: string;
  message: string;
}

/** True for text that starts like JSON. YAML may start like that too, and JSON wording fits it as well. */
export function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/** A syntax error worded for JSON; undefined where the parser's own message does not mention YAML. */
export function jsonMessage({ code, message }: SyntaxProblem): string | undefined {
  switch (code) {
    case 'MISSING_CHAR':
    case 'BAD_INDENT':
      return missing(message);
    case 'BLOCK_IN_FLOW':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'a "," is missing after this value';
    case 'BAD_SCALAR_START':
      return 'a value cannot begin like this';
    case 'UNEXPECTED_TOKEN':
      return unexpected(message);
    default:
      return undefined;
  }
}

function missing(message: string): string {
  if (/closing ["']quote/.test(message)) return 'a text is not closed: a quotation mark is missing';
  const bracket = /must .*end with an? ([}\]])/.exec(message)?.[1];
  if (bracket === '}') return 'an object is not closed: a "}" is missing here';
  if (bracket === ']') return 'a list is not closed: a "]" is missing here';
  return 'a ":" or a "," is missing here';
}

function unexpected(message: string): string {
  const sign = /^Unexpected ([,:]) in /.exec(message)?.[1];
  return sign === undefined ? 'the document has ended before this' : `this "${sign}" does not belong here`;
}
