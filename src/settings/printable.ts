/**
 * Characters that a terminal or an editor interprets, or that are invisible: controls, line ends, direction marks,
 * zero-width characters: Unicode's Cc, Cf, Zl and Zp, in ranges, because naming them loads the data of Unicode at every start. Those beyond the
 * BMP only draw flags, and YAML and JSON have no common escape for them.
 */
const SET =
  '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b-\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff';
const HIDDEN = new RegExp(`[${SET}]`);
const EACH_HIDDEN = new RegExp(HIDDEN, 'g');
const RUNS = new RegExp(`[${SET}]+`, 'g');
/** Line breaks and tabs are kept in multi-line text. */
const BETWEEN_LINES = new RegExp(`\\r?\\n|\\t|[${SET}]`, 'g');
/**
 * Sequences that our own output uses; anything else is foreign: lines and tabs, the styles of `cli/views/text.ts`, and the sequences that redraw the
 * status. Cursor movements count only at the beginning of a text.
 */
const OURS = '\\r?\\n|\\t|\\u001b\\[(?:1|2|22|3[1239])m|^\\r\\u001b\\[2K|^\\u001b\\[H|\\u001b\\[K(?=\\n)|\\u001b\\[J$';
const FOREIGN = new RegExp(`${OURS}|([${SET}])`, 'g');
/** Maximum characters of a name that are shown. */
const LONGEST_NAME = 40;

export function hasHidden(text: string): boolean {
  return HIDDEN.test(text);
}

/** Escapes hidden characters, for one line, as in JSON and YAML: `\u009b`. */
export function escapeHidden(text: string): string {
  return text.replace(EACH_HIDDEN, escapeSign);
}

/** Escapes hidden characters in multi-line text as in JSON and YAML; LF, CRLF and tabs stay. */
export function escapeInLines(text: string): string {
  return text.replace(BETWEEN_LINES, (sign) => (/^(?:\r?\n|\t)$/.test(sign) ? sign : escapeSign(sign)));
}

/**
 * Prepares our text with untrusted text in it for a terminal: hidden characters are escaped as in JSON, so a JSON document stays equivalent. Only the
 * escape sequences that we write ourselves pass.
 */
export function forTerminal(text: string): string {
  return text.replace(FOREIGN, (all, foreign?: string) => (foreign === undefined ? all : escapeSign(foreign)));
}

/** Replaces each run of hidden characters with a space, for one line. */
export function stripHidden(text: string): string {
  return text.replace(RUNS, ' ');
}

/** Formats a name from a file for a message: quoted, on one line, cut to forty characters. */
export function quoteName(text: string): string {
  // A character has at most two UTF-16 units.
  const start = Array.from(text.slice(0, 2 * LONGEST_NAME))
    .slice(0, LONGEST_NAME)
    .join('');
  return escapeHidden(JSON.stringify(start.length < text.length ? `${start}…` : text));
}

function escapeSign(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Formats `web`, `web and db` or `web, db and cache`; empty for none. */
export function wordList(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
