import { RdError } from '../../errors.ts';

const MAX_SHOWN_LENGTH = 250;
/** Code points of a name that messages show; all lengths are in code points. */
const SHOWN = 30;

/**
 * Checks a name by the rules of the compatible application, in its order. Names are never used as file names.
 * @throws RdError `ERR_SNAPSHOT` with the text that scripts match on.
 */
export function checkName(name: string): void {
  if (name === '') throw invalid('snapshot name must not be the empty string');
  const points = [...name];
  if (points.length > MAX_SHOWN_LENGTH) {
    throw invalid(
      `invalid name ${shortName(name)}: max length is ${MAX_SHOWN_LENGTH}, ${points.length} were specified`,
    );
  }
  let position = 0;
  for (const point of points) {
    if (!isPrintable(point)) {
      throw invalid(
        `invalid character '${escapePoint(point, "'")}' at position ${position} in name: all characters must be printable or a space`,
      );
    }
    position += Buffer.byteLength(point);
  }
  if (name.startsWith(' '))
    throw invalid(`invalid name ${shortName(name)}: must not start with a white-space character`);
  if (name.endsWith(' ')) throw invalid(`invalid name ${shownEnd(name)}: must not end with a white-space character`);
}

/** Throws unless a name is new; names are compared exactly. @throws RdError `ERR_SNAPSHOT`. */
export function checkUnique(name: string, taken: readonly string[]): void {
  if (taken.includes(name)) throw invalid(`name ${shortName(name)} already exists`);
}

/** Quotes text in double quotes, with backslashes, quotes and unprintable characters escaped; other Unicode stays. */
export function quoted(text: string): string {
  return `"${[...text].map((point) => escapePoint(point, '"')).join('')}"`;
}

function shortName(name: string): string {
  const points = [...name];
  return quoted(points.length > SHOWN ? `${points.slice(0, SHOWN - 1).join('')}…` : name);
}

function shownEnd(name: string): string {
  const points = [...name];
  return quoted(points.length > SHOWN ? `…${points.slice(-SHOWN).join('')}` : name);
}

/** Whether a character is a letter, mark, number, punctuation, symbol or the ASCII space, which is the only printable blank. */
function isPrintable(point: string): boolean {
  return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(point);
}

const NAMED: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

/** Escapes one code point for double quotes. */
function escapePoint(point: string, mark: string): string {
  if (point === mark || point === '\\') return `\\${point}`;
  if (isPrintable(point)) return point;
  const code = point.codePointAt(0) ?? 0;
  // A lone surrogate is not a character: the compatible tool reads it as the replacement character.
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  const hex = (digits: number) => code.toString(16).padStart(digits, '0');
  if (code < 0x20 || code === 0x7f) return NAMED[point] ?? `\\x${hex(2)}`;
  return code > 0xffff ? `\\U${hex(8)}` : `\\u${hex(4)}`;
}

function invalid(message: string): RdError {
  return new RdError('ERR_SNAPSHOT', message);
}
