import { styleText } from 'node:util';
import type { JsonValue } from '../../src/json.ts';
import type { Change, Sensitive } from '../../src/plan/change.ts';
import { escapeHidden, stripHidden } from '../../src/settings/printable.ts';

const PLAIN = /^[\w./:@*+-]+$/;
const JSON_LITERALS = /^(?:true|false|null|-?\d+(?:\.\d+)?)$/;

/** Formats a value on one line: plain words bare, everything else as JSON, so control characters never reach a terminal. */
export function valueText(value: JsonValue | Sensitive | undefined): string {
  if (value === undefined) return '(nothing)';
  if (isSensitive(value)) return '(sensitive)';
  if (typeof value === 'string')
    return PLAIN.test(value) && !JSON_LITERALS.test(value) ? value : escapeHidden(JSON.stringify(value));
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, inner]) => `${valueText(key)}: ${valueText(inner)}`);
    return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
  }
  return JSON.stringify(value);
}

/** Formats the path of a change: `application.extensions.installed[example/ext]`. */
export function pathText(change: Pick<Change, 'path' | 'key'>): string {
  return change.key === undefined ? change.path : `${change.path}[${valueText(change.key)}]`;
}

/** Cleans untrusted text for a terminal: control and invisible characters, which could move the cursor or rewrite lines, become spaces. */
export function plainText(text: string): string {
  return stripHidden(text);
}

/** Formats a duration for people: `240 ms`, `1.4 s`, `2 min 5 s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Formats a JSON document for stdout. */
export function jsonText(document: unknown): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Formats one line per row, each column as wide as its longest cell in code points. The last column is not padded. */
export function tableLines(rows: readonly (readonly string[])[], gap = 2): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => lengthOf(row[column] ?? ''))) + gap);
  const pad = (cell: string, width: number) => cell + ' '.repeat(width - lengthOf(cell));
  return rows.map((row) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : pad(cell, widths[column] ?? 0))).join(''),
  );
}

function lengthOf(text: string): number {
  return [...text].length;
}

/** Joins the parts that are not empty, with an empty line between them. */
export function paragraphs(parts: readonly string[]): string {
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** Formats a count: `1 change`, `2 changes`. */
export function count(n: number, word: string): string {
  return `${n} ${word}${n === 1 ? '' : 's'}`;
}

function isSensitive(value: JsonValue | Sensitive): value is Sensitive {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && value.sensitive === true;
}

/** Terminal emphasis. Words and signs carry the meaning; without color each function returns its text unchanged. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
}

type Format = Parameters<typeof styleText>[0];

export function style(color: boolean): Style {
  const paint = (format: Format) => (text: string) =>
    color ? styleText(format, text, { validateStream: false }) : text;
  return { bold: paint('bold'), dim: paint('dim'), good: paint('green'), warn: paint('yellow'), bad: paint('red') };
}
