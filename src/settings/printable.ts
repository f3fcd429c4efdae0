/**
 * Signs that a terminal or an editor obeys, or that nobody sees: controls, ends of lines, marks of the direction of writing, signs
 * without a width or a meaning. Those beyond 16 bits only draw flags, and YAML has no escape for them that JSON has too.
 */
const HIDDEN = /(?![\u{10000}-\u{10ffff}])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffe\uffff]/u;
const EACH = new RegExp(HIDDEN, 'gu');
const RUNS = new RegExp(`(?:${HIDDEN.source})+`, 'gu');
/** What is a part of the lines of a text stays in them. */
const BETWEEN_LINES = new RegExp(`\\r?\\n|\\t|${HIDDEN.source}`, 'gu');
/** What is not in any text of ours, its styles and cursor movements included. */
const FOREIGN = new RegExp(`(?![\\u0000-\\u001f])${HIDDEN.source}`, 'gu');
/** Signs of a name that are shown. */
const LONGEST_NAME = 40;

export function hasHidden(text: string): boolean {
  return HIDDEN.test(text);
}

/** On one line, with hidden signs as JSON and YAML write them: `\u009b`. */
export function escapedHidden(text: string): string {
  return text.replace(EACH, escaped);
}

/** The same for text of many lines: line feeds, with a carriage return before them or not, and tabs stay. */
export function escapedInLines(text: string): string {
  return text.replace(BETWEEN_LINES, (sign) => (/^(?:\r?\n|\t)$/.test(sign) ? sign : escaped(sign)));
}

/**
 * Text on its way to a terminal, whoever made it: C1 controls, marks of direction and what has no width are escaped as JSON writes
 * them, so that a JSON document stays the same document. Our own styles pass, so ASCII controls do; those of others are escaped before.
 */
export function forTerminal(text: string): string {
  return text.replace(FOREIGN, escaped);
}

/** On one line, with a blank for each run of hidden signs. */
export function withoutHidden(text: string): string {
  return text.replace(RUNS, ' ');
}

/** A name from a file for a message: in quotation marks, the first forty signs of it, on one line. */
export function quotedName(text: string): string {
  // A sign has at most two units.
  const start = Array.from(text.slice(0, 2 * LONGEST_NAME))
    .slice(0, LONGEST_NAME)
    .join('');
  return escapedHidden(JSON.stringify(start.length < text.length ? `${start}…` : text));
}

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
