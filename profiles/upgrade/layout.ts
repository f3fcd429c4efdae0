/** How a document is laid out, where an edit has to write something new. */
export interface Layout {
  /** The end of a line. */
  eol: string;
  /** Columns per level. */
  step: number;
  /** What one column of indentation is: a space, or a tab between brackets. */
  pad: ' ' | '\t';
}

/** The indentation of a line that begins in a column. */
export function indentation({ pad }: Layout, columns: number): string {
  return pad.repeat(columns);
}

/** How far the lines between brackets have to move to stand deeper than the column of a name in block style. */
export function shallow(text: string, column: number, { step }: Layout): number {
  let least = Number.POSITIVE_INFINITY;
  for (const line of text.split('\n').slice(1)) {
    if (line.trim() !== '') least = Math.min(least, line.search(/[^ ]/));
  }
  return least > column ? 0 : column + step - least;
}

/** The lines of a value moved to the side; the first stands behind its name unless it is `whole`. */
export function shifted(text: string, by: number, whole: boolean, layout: Layout): string {
  if (by === 0) return text;
  return text
    .split('\n')
    .map((line, index) => {
      if ((index === 0 && !whole) || line.trim() === '') return line;
      return by > 0 ? `${indentation(layout, by)}${line}` : line.replace(new RegExp(`^${layout.pad}{0,${-by}}`), '');
    })
    .join('\n');
}
