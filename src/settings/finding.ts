import { escapedHidden } from './printable.ts';

const MOST_SHOWN = 50;

/** A problem in a document, with its position. Line and column start at 1. */
export interface Finding {
  file?: string;
  line?: number;
  column?: number;
  /** RFC 6901; empty for the whole document. */
  pointer: string;
  message: string;
  /** The accepted values, as a phrase: `an integer from 1 to 65535`. */
  expected?: string;
  /** The name or value probably intended. */
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
  // Names and values come from documents: they must neither break the line nor emit control sequences.
  return escapedHidden(`${place === '' ? '' : `${place}: `}${parts.join('; ')}`);
}

/** As lines of text: at most fifty, and the number of the rest. */
export function formatFindings(findings: readonly Finding[]): string[] {
  const shown = findings.slice(0, MOST_SHOWN).map(formatFinding);
  const more = findings.length - shown.length;
  return more === 0 ? shown : [...shown, `… and ${more} more`];
}
