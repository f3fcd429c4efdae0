import { escapedHidden } from './printable.ts';

const MOST_SHOWN = 50;

/** Something wrong in a document, with its place. Line and column count from 1. */
export interface Finding {
  file?: string;
  line?: number;
  column?: number;
  /** RFC 6901; empty for the whole document. */
  pointer: string;
  message: string;
  /** What would be right, as a phrase: `an integer from 1 to 65535`. */
  expected?: string;
  /** The name or value that was probably meant. */
  suggestion?: string;
}

/** One line that editors can jump to: `file:line:column: message (/pointer); expected …; did you mean …?`. */
export function formatFinding(finding: Finding): string {
  const position = finding.line === undefined ? [] : [String(finding.line), String(finding.column ?? 1)];
  const place = [...(finding.file === undefined ? [] : [finding.file]), ...position].join(':');
  const parts = [
    `${finding.message}${finding.pointer === '' ? '' : ` (${finding.pointer})`}`,
    ...(finding.expected === undefined ? [] : [`expected ${finding.expected}`]),
    ...(finding.suggestion === undefined ? [] : [`did you mean ${finding.suggestion}?`]),
  ];
  // Names and values come from documents: none of them may break the line or reach the terminal as a control sequence.
  return escapedHidden(`${place === '' ? '' : `${place}: `}${parts.join('; ')}`);
}

/** As lines for a person: at most fifty, and one that says how many more there are. */
export function formatFindings(findings: readonly Finding[]): string[] {
  const shown = findings.slice(0, MOST_SHOWN).map(formatFinding);
  const more = findings.length - shown.length;
  return more === 0 ? shown : [...shown, `… and ${more} more`];
}
