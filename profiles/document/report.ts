import { defined, type JsonValue } from '../../src/json.ts';
import type { Finding } from '../../src/settings/issue.ts';
import { pointerTo } from '../../src/settings/leaf-paths.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { locateInDocument, type ParsedDocument } from '../../src/settings/parse.ts';

/** Adds a finding at a JSON pointer of one document. */
export type Report = (pointer: string, message: string, extra?: ReportExtra) => void;

interface ReportExtra {
  expected?: string;
  suggestion?: string;
  /** The part that the position refers to; the value by default. */
  part?: 'key' | 'value';
}

/** Returns a `Report` that adds the line and column of the pointer, or of its nearest parent with a position. */
export function reporter(parsed: ParsedDocument, findings: Finding[]): Report {
  return (pointer, message, { part, ...extra } = {}) => {
    findings.push(locateInDocument(parsed, { pointer, message, ...extra }, part));
  };
}

/** Sorts findings by line and column, whichever check found them. */
export function inTextOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}

/** Appends a step to an RFC 6901 pointer. */
export function child(pointer: string, key: string | number): string {
  return `${pointer}${pointerTo([String(key)])}`;
}

/** Reports a value outside a closed list. */
export function reportValue(pointer: string, value: JsonValue, allowed: readonly string[], report: Report): void {
  const suggestion = typeof value === 'string' ? nearest(value, allowed) : undefined;
  const where = pointer.slice(pointer.lastIndexOf('/') + 1);
  report(pointer, `${describe(value)} is not a value of ${/^\d+$/.test(where) ? pointer.split('/')[1] : where}`, {
    expected: allowed.length === 1 ? `${allowed[0]}` : `one of ${allowed.join(', ')}`,
    ...defined({ suggestion }),
  });
}

/** Reports an unknown key. */
export function reportUnknown(pointer: string, key: string, known: readonly string[], report: Report): void {
  const suggestion = nearest(key, known);
  report(pointer, `unknown key ${JSON.stringify(key)}`, {
    part: 'key',
    ...(suggestion === undefined ? { expected: `one of ${known.join(', ')}` } : { suggestion }),
  });
}

/** Describes a value in messages: itself if it is short, otherwise its beginning or kind. */
export function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  const text = JSON.stringify(value);
  return text.length <= 60 ? text : `${text.slice(0, 57)}…`;
}
