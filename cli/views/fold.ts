/** Column limits of a folded line, whatever the terminal's width. */
const WIDTHS = { least: 40, most: 100 };

/** Unicode's category Cc as ranges, because naming it loads Unicode data at every start. */
const CONTROL = '[\\u0000-\\u001f\\u007f-\\u009f]';
/** Matches the sequences that `styleText` puts around text. */
const STYLE = new RegExp(`${CONTROL}\\[[\\d;]*m`, 'g');
/** Matches the beginning of a command to copy. */
const PROGRAM = "(?:sudo|apt-get|brew|mount|RDCTL_HOME=\\S+|'[^']*/rdctl'|(?:\\S*/)?rdctl) ";
/** Matches text that stays on one line: a command in backticks, one that ends its line after a colon, and any other word. */
const WORD = new RegExp(`(?:\`[^\`]+\`|(?<= \\S+: )${PROGRAM}.*|\\S)+`, 'g');
/** Matches lines that are never folded: JSON, examples, stack traces, fixes (`fix: …`), and lines that move the cursor. */
const VERBATIM = new RegExp(`^ *(?:[{}[\\]]|"[^"]*"(?::|,?$))|^ +(?:${PROGRAM}|at |fix: )(?!.*\\[flags\\])|${CONTROL}`);
/** Matches the mark of a list, beside which its text is indented. */
const MARK = /^ *(?:[-*!~+\u00b1] )?/;
/** Matches `warning: …`, `Target: …`, `team.yaml:7:5: …`. */
const NAMED = /^\S+: /;
/** Matches a name beside its text; a row of more columns is a table. */
const LABEL = /^ *\S+(?: \S+)* {2,}(?=\S)/;
const TABLE = /\S {2,}\S.*\S {2,}\S/;

/**
 * Folds prose to lines that fit a terminal: whole lines are folded at words, with the indent of their text. Tables and text to copy stay as they are.
 */
export function fold(text: string, columns: number): string {
  const width = Math.min(Math.max(columns, WIDTHS.least), WIDTHS.most);
  return text.replace(/.*\n/g, (line) => `${foldLine(line.slice(0, -1), width)}\n`);
}

function foldLine(line: string, width: number): string {
  const plain = line.replace(STYLE, '');
  if (lengthOf(plain) <= width || VERBATIM.test(plain) || TABLE.test(plain)) return line;
  const indent = indentOf(plain);
  if (indent > width / 2) return line;
  const [head = ''] = new RegExp(`^(?:(?:${STYLE.source})*.){${indent}}`, 'u').exec(line) ?? [];
  const lines = wrap(line.slice(head.length).match(WORD) ?? [], width - indent);
  return head + lines.join(`\n${' '.repeat(indent)}`);
}

/** Returns the columns before the text. */
function indentOf(plain: string): number {
  const [label] = LABEL.exec(plain) ?? [];
  if (label !== undefined) return label.length;
  return NAMED.test(plain) ? 2 : (MARK.exec(plain)?.[0].length ?? 0);
}

/** Wraps words into lines of at most `width` columns; a longer word is a line of its own. */
export function wrap(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || lengthOf(`${last} ${word}`) > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Returns the length in code points, by which tables count. */
function lengthOf(text: string): number {
  return [...text.replace(STYLE, '')].length;
}
