import type { Shot, Story } from './recording.ts';

// A terminal as a self-contained SVG: it brings its own background, so that it reads the same on a light page and a dark one.

const FONT_SIZE = 13;
const COLUMN = 7.83;
const LINE = 19;
const PADDING = 16;
const COLUMNS = 84;
const FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace";

/** Classes of the style sheet by the codes that `cli/views/style.ts` writes. */
const CLASSES: Readonly<Record<string, string>> = { '1': 'bold', '2': 'dim', '31': 'bad', '32': 'good', '33': 'warn' };
const STYLES = `
    text { font: ${FONT_SIZE}px ${FONTS}; fill: #d5dbe3; white-space: pre; }
    .prompt { fill: #7d8894; }
    .bold { font-weight: 700; fill: #ffffff; }
    .dim { fill: #8b95a1; }
    .good { fill: #57c66b; }
    .warn { fill: #e3b341; }
    .bad { fill: #ff7b72; }
  `;

/** Text from one column on, in one style. */
interface Run {
  column: number;
  text: string;
  style?: string;
}

/** The picture of what was typed and printed, top to bottom. */
export function terminalSvg({ title, prompt }: Pick<Story, 'title' | 'prompt'>, shots: readonly Shot[]): string {
  const lines = shots.flatMap(({ command, printed }, index): Run[][] => [
    ...(index === 0 ? [] : [[]]),
    [
      { column: 0, text: prompt, style: 'prompt' },
      { column: 2, text: command, style: 'bold' },
    ],
    ...printed.trimEnd().split('\n').flatMap(linesOf),
  ]);
  const width = Math.round(COLUMNS * COLUMN + 2 * PADDING);
  const height = lines.length * LINE + 2 * PADDING;
  const texts = lines.flatMap((runs, index) => runs.map((run) => textElement(run, index)));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
  <title>${escaped(title)}</title>
  <style>${STYLES}</style>
  <rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="#11161d" stroke="#3a434e"/>
${texts.map((text) => `  ${text}\n`).join('')}</svg>
`;
}

/**
 * A printed line, cut where its style changes, and where a terminal begins a new line. Blanks at the beginning of a run are left to its
 * position.
 */
function linesOf(printed: string): Run[][] {
  const lines: Run[][] = [[]];
  let column = 0;
  let style: string | undefined;
  const put = (text: string) => {
    const shown = text.trimStart();
    if (shown === '') return;
    lines.at(-1)?.push({ column: column + text.length - shown.length, text: shown, ...(style ? { style } : {}) });
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what a terminal is told by
  for (const [, code, text = ''] of printed.matchAll(/\u001b\[(\d*)m|([^\u001b]+)/g)) {
    if (code !== undefined) style = CLASSES[code];
    for (let rest = text; rest !== ''; ) {
      if (column === COLUMNS) {
        lines.push([]);
        column = 0;
      }
      const part = rest.slice(0, COLUMNS - column);
      put(part);
      column += part.length;
      rest = rest.slice(part.length);
    }
  }
  return lines;
}

/** Position and length are given, so that columns line up in whatever font there is. */
function textElement({ column, text, style }: Run, line: number): string {
  const shown = text.trimEnd();
  const x = rounded(PADDING + column * COLUMN);
  const y = PADDING + line * LINE + FONT_SIZE;
  const length = rounded(shown.length * COLUMN);
  return `<text x="${x}" y="${y}" textLength="${length}" lengthAdjust="spacingAndGlyphs"${style ? ` class="${style}"` : ''}>${escaped(shown)}</text>`;
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A picture without its durations, which differ from run to run, and the lengths of the texts that they are in. */
export function timeless(picture: string): string {
  return picture.replace(/ textLength="[\d.]+"([^>]*>[^<]*?)\d[\d.]* m?s\b/g, ' textLength="ANY"$1TIME');
}
