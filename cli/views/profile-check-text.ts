import {
  type CheckCell,
  type Effect,
  findingLists,
  rangesText,
  type SpreadFinding,
  sentence,
  type Verdict,
  whereText,
} from '../../profiles/check/finding.ts';
import { PLATFORM_NAMES, PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { plainText, type Style } from './text.ts';

/** Maximum findings shown of each kind; a hostile file can hold thousands of unknown names. */
const MAX_SHOWN = 50;
/** Line width limits, whatever the terminal's width. */
const WIDTHS = { most: 80, least: 24 };

const CELLS: Readonly<Record<Verdict, { text: string; paint: keyof Style }>> = {
  accepted: { text: '✓ accepted', paint: 'good' },
  partly: { text: '~ in part', paint: 'warn' },
  rejected: { text: '✗ refused', paint: 'bad' },
};
const HEADINGS: Readonly<Record<Effect, string>> = {
  refused: '✗ Refused: the application does not start, or quits',
  ignored: '~ Ignored: the application starts without it',
  changed: '= Changed: the application starts with a different value',
};
const LATER: Readonly<Record<Effect, string>> = {
  ...HEADINGS,
  ignored: '~ Would be ignored, once nothing is refused',
  changed: '= Would be changed, once nothing is refused',
};

/** Formats the findings in one file: a summary, the table, and each finding once. Nothing is wider than the terminal. */
export function checkText(
  label: string,
  cells: readonly CheckCell[],
  place: (names: readonly string[]) => string | undefined,
  paint: Style,
  columns: number = WIDTHS.most,
): string {
  const width = Math.max(WIDTHS.least, Math.min(columns, WIDTHS.most)) - 2;
  const lists = findingLists(cells).map(({ effect, later, findings }) => {
    const heading = wrapText((later ? LATER : HEADINGS)[effect], '', width).join('\n');
    return listText(heading, findings, { cells, place, paint, width });
  });
  return `${[wrapText(plainText(`${label}: ${sentence(cells)}`), '', width).join('\n'), table(cells, paint), ...lists].join('\n\n')}\n`;
}

/** A finding shared by several cells. */
interface SharedFinding {
  path: string;
  parts: string[];
  /** Findings merged into it. */
  count: number;
  places: string[];
  lines: string[];
}

interface Shown {
  cells: readonly CheckCell[];
  place: (names: readonly string[]) => string | undefined;
  paint: Style;
  /** Line width. */
  width: number;
}

function listText(heading: string, findings: readonly SpreadFinding[], { cells, place, paint, width }: Shown): string {
  const shared = new Map<string, SharedFinding>();
  for (const each of findings) {
    const { part, path, names, reason, suggestion } = each.finding;
    const where = whereText(each, cells);
    const one = shared.get(`${path}\n${reason}\n${where}`);
    if (!one && shared.size === MAX_SHOWN) continue;
    const at = place(names);
    const places = at === undefined ? [] : [plainText(at)];
    if (one) {
      one.parts.push(...(part ? [part] : []));
      one.count += 1;
      one.places.push(...places.filter((text) => !one.places.includes(text)));
      continue;
    }
    const meant = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
    const lines = [
      ...wrapText(plainText(`${reason}${meant}`), INDENT, width),
      ...wrapText(where, INDENT, width).map((line) => paint.dim(line)),
    ];
    shared.set(`${path}\n${reason}\n${where}`, {
      path: plainText(path),
      parts: part ? [part] : [],
      count: 1,
      places,
      lines,
    });
  }
  const all = [...shared.values()];
  const lines = all.flatMap(({ path, parts, places, lines: below }, index) => [
    ...titleOf(path, [...(parts.length > 0 ? [parts.join(' and ')] : []), ...places], paint, width),
    // Findings shared with the next cell are printed below it.
    ...(all[index + 1]?.lines.join('\n') === below.join('\n') ? [] : below),
  ]);
  const more = findings.length - all.reduce((sum, { count }) => sum + count, 0);
  return [paint.bold(heading), ...lines, ...(more > 0 ? [`  … and ${more} more (use -o json to see all)`] : [])].join(
    '\n',
  );
}

function titleOf(path: string, facts: readonly string[], paint: Style, width: number): string[] {
  const title = `  ${paint.bold(path)}`;
  if (facts.length === 0) return [title];
  const text = `(${facts.join(', ')})`;
  if (`  ${path} ${text}`.length <= width) return [`${title} ${text}`];
  return [title, ...wrapText(text, INDENT, width)];
}

/** Formats a table with one row for neighbors with identical cells. */
function table(cells: readonly CheckCell[], paint: Style): string {
  const platforms = PLATFORMS.filter((platform) => cells.some((cell) => cell.platform === platform));
  const rows = rowsOf(cells, platforms);
  const head = ['Release', 'Settings', ...platforms.map((platform) => PLATFORM_NAMES[platform])];
  const texts = rows.map(({ releases, versions, verdicts }) => [
    rangesText(releases),
    versionsText(versions),
    ...verdicts.map((verdict) => CELLS[verdict].text),
  ]);
  const widths = head.map((name, column) => Math.max(name.length, ...texts.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[], colors: readonly ((text: string) => string)[] = []) =>
    `  ${row.map((text, column) => (colors[column] ?? same)(column === row.length - 1 ? text : text.padEnd(widths[column] ?? 0))).join('  ')}`;
  const painted = rows.map(({ verdicts }, index) =>
    line(texts[index] ?? [], [same, same, ...verdicts.map((verdict) => paint[CELLS[verdict].paint])]),
  );
  return [paint.bold(line(head)), ...painted].join('\n');
}

interface Row {
  releases: string[];
  versions: number[];
  verdicts: Verdict[];
}

function rowsOf(cells: readonly CheckCell[], platforms: readonly Platform[]): Row[] {
  const rows: Row[] = [];
  for (const release of new Set(cells.map((cell) => cell.release))) {
    const own = cells.filter((cell) => cell.release === release);
    const verdicts = platforms.flatMap((platform) => own.find((cell) => cell.platform === platform)?.verdict ?? []);
    const versions = own.slice(0, 1).map(({ settingsVersion }) => settingsVersion);
    const last = rows.at(-1);
    if (last && last.verdicts.join() === verdicts.join()) {
      last.releases.push(release);
      last.versions.push(...versions);
    } else rows.push({ releases: [release], versions, verdicts });
  }
  return rows;
}

function versionsText(versions: readonly number[]): string {
  const [first] = versions;
  const last = versions.at(-1);
  return first === last ? `${first ?? ''}` : `${first}–${last}`;
}

function same(text: string): string {
  return text;
}

/** Indent of wrapped text. Longer words are not broken. */
const INDENT = '      ';

function wrapText(text: string, indent: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > width - indent.length) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => `${indent}${each}`);
}
