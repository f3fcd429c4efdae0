import { ERRORS, type ErrorCode } from '../../src/errors.ts';

const WORDS = 'The service did not start: ';

/** Prefix of a service's final error, parsed by the command that launched it. */
export function failureLine(code: ErrorCode): string {
  return `${WORDS}${code}\n`;
}

/** Parses the last such line: the code and the message after it. */
export function failureIn(output: string): { code: ErrorCode; said: string } | undefined {
  const at = output.lastIndexOf(WORDS);
  const end = output.indexOf('\n', at);
  if (at === -1 || end === -1) return undefined;
  const word = output.slice(at + WORDS.length, end);
  return isCode(word) ? { code: word, said: output.slice(end + 1) } : undefined;
}

function isCode(word: string): word is ErrorCode {
  return Object.hasOwn(ERRORS, word);
}
