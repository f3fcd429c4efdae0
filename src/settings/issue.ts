import { defined, type JsonObject, type JsonValue } from '../json.ts';
import { type Field, PLATFORM_NAMES, type Platform } from './field.ts';
import { fieldAt } from './fields.ts';
import { nearest } from './nearest.ts';
import { escapeHidden } from './printable.ts';
import type { Settings } from './settings.gen.ts';
import { wholeNumber } from './unknown-keys.ts';

/** The kinds of reasons to reject a value. */
export type IssueCode =
  /** A value in place of a section. */
  | 'section'
  | 'type'
  | 'range'
  | 'enum'
  | 'format'
  | 'duplicates'
  | 'version'
  /** The setting cannot be changed on this platform. */
  | 'platform'
  /** The value conflicts with another setting or with this computer. */
  | 'conflict'
  | 'decrease'
  | 'kubernetes-version'
  | 'locked';

/** A rule that a value breaks. */
export interface Problem {
  code: IssueCode;
  /** The line of the API's reply. */
  message: string;
  /** Fails a launch with this value as an option; the API replies 400 either way. */
  fatal: boolean;
  /** The accepted values, as a phrase. */
  expected?: string;
  /** Key of the map entry or index of the list item. */
  entry?: string;
}

/** A problem with its location in the payload. */
export interface Issue {
  code: IssueCode;
  /** RFC 6901 pointer into the payload. */
  pointer: string;
  /** Dotted path of the setting or section. */
  path: string;
  message: string;
  fatal: boolean;
  expected?: string;
}

/** The inputs to validation beside the payload. */
export interface ValidateContext {
  /** The settings that the payload changes. */
  current: Settings;
  platform: Platform;
  /**
   * Report an invalid value as such even if the platform or another setting forbids the change anyway, for authors of
   * documents for several computers. The API reports only the prohibition.
   */
  valuesFirst?: boolean;
  /** Report a locked setting as such whatever is wrong with its value, as for arguments of a start. */
  locksFirst?: boolean;
  /** `process.arch`. */
  arch: string;
  /** Product version of macOS, such as `14.5`; without it rules about old releases do not apply. */
  osVersion?: string;
  /** Lock record (`lockRecord`). */
  locked?: JsonObject;
  /** Size of the machine's disk in bytes, 0 without one; if absent, the size in the settings counts. */
  diskBytes?: number;
  /** Available cluster versions; absent while unknown. */
  kubernetesVersions?: readonly string[];
}

const MAX_SHOWN = 50;

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

/** A mistake in a block of a profile. `key`: the mistake is in the name. */
export interface BlockProblem extends Finding {
  part?: 'key';
}

/** Reports a mistake below the value being read. */
export type NoteProblem = (
  below: readonly (string | number)[],
  message: string,
  more?: Omit<BlockProblem, 'pointer' | 'message'>,
) => void;

/** Reads a value into canonical form, leaving out invalid parts. Returns undefined if nothing is left. */
export type ReadValue = (value: JsonValue, note: NoteProblem) => JsonValue | undefined;

/** Formats one line that editors can jump to: `file:line:column: message (/pointer); expected …; did you mean …?`. */
export function formatFinding(finding: Finding): string {
  const position = finding.line === undefined ? [] : [String(finding.line), String(finding.column ?? 1)];
  const place = [...(finding.file === undefined ? [] : [finding.file]), ...position].join(':');
  const parts = [
    `${finding.message}${finding.pointer === '' ? '' : ` (${finding.pointer})`}`,
    ...(finding.expected === undefined ? [] : [`expected ${finding.expected}`]),
    ...(finding.suggestion === undefined ? [] : [`did you mean ${finding.suggestion}?`]),
  ];
  // Names and values come from documents: they must neither break the line nor emit control sequences.
  return escapeHidden(`${place === '' ? '' : `${place}: `}${parts.join('; ')}`);
}

/** Formats findings as lines of text: at most fifty, and the number of the rest. */
export function formatFindings(findings: readonly Finding[]): string[] {
  const shown = findings.slice(0, MAX_SHOWN).map(formatFinding);
  const more = findings.length - shown.length;
  return more === 0 ? shown : [...shown, `… and ${more} more`];
}

const LONGEST_QUOTE = 60;
/** Maximum length of a message, including quoted text. */
const LONGEST_MESSAGE = 240;

/** Words that users, and YAML 1.1, take for booleans. */
const BOOLEAN_WORDS: Readonly<Record<string, string>> = {
  ...{ true: 'true', yes: 'true', on: 'true' },
  ...{ false: 'false', no: 'false', off: 'false' },
};

/** A finding without its position. */
type Explanation = Omit<Finding, 'pointer'>;

/** The expected value. */
interface Wanted {
  expected?: string;
  /** The accepted values of an enum. */
  allowed?: readonly string[];
}

/** Words an issue for the author of a document. `written` is the value's source text, if known. */
export function explain(issue: Issue, written: string | undefined): Explanation {
  const field = fieldAt(issue.path);
  const expected = issue.expected === undefined ? {} : { expected: issue.expected };
  switch (issue.code) {
    case 'section':
      return { message: `"${issue.path}" is a section, not a value`, ...expected };
    case 'platform':
      return { message: `"${issue.path}" can be changed on ${platformsOf(field)} only` };
    case 'type':
    case 'range':
    case 'enum':
      return wrongValue(issue.path, written, { ...expected, ...(field?.enum ? { allowed: field.enum } : {}) });
    default:
      return { message: shorten(issue.message.replace(/\.$/, '')), ...expected };
  }
}

/** Shortens an API message, which quotes the whole value and may be as long as the document. */
function shorten(message: string): string {
  if (message.length <= LONGEST_MESSAGE) return message;
  return `${message.slice(0, LONGEST_MESSAGE - LONGEST_QUOTE)}…${message.slice(-LONGEST_QUOTE)}`;
}

/**
 * Formats `"kubernetes.port" cannot be 70000`, omitting the value if it is a secret or not one short line, with a
 * suggestion. `path` is the dotted path in the document.
 */
export function wrongValue(path: string, written: string | undefined, { expected, allowed = [] }: Wanted): Explanation {
  const expectation = expected === undefined ? {} : { expected };
  if (fieldAt(path)?.sensitive || written === undefined || written === '' || written.includes('\n')) {
    return { message: `"${path}" has an invalid value`, ...expectation };
  }
  const quoted = written.length > LONGEST_QUOTE ? `${written.slice(0, LONGEST_QUOTE)}…` : written;
  const suggestion = nearest(unquote(written), allowed) ?? otherKind(written, expected);
  return {
    message: `"${path}" cannot be ${quoted}`,
    ...expectation,
    ...defined({ suggestion }),
  };
}

/**
 * Suggests the value written as the expected type: `"1.30"` where a string is expected and YAML read a number, or
 * `true` for an unnecessarily quoted one.
 */
function otherKind(written: string, expected = ''): string | undefined {
  if (expected === 'a string') {
    return /^[\w.+-]{1,40}$/.test(written) && written !== 'null' ? `"${written}"` : undefined;
  }
  const inner = unquote(written);
  if (expected.startsWith('true')) return BOOLEAN_WORDS[inner.toLowerCase()];
  if (expected.startsWith('an integer') && /[a-z]$/i.test(inner)) return wholeNumber(inner);
  if (inner === written) return undefined;
  return expected.startsWith('an integer') && /^-?\d{1,15}$/.test(inner) ? inner : undefined;
}

function platformsOf(field: Field | undefined): string {
  return (field?.platforms ?? []).map((platform) => PLATFORM_NAMES[platform]).join(' and ');
}

function unquote(text: string): string {
  return text.replace(/^(["'])(.*)\1$/, '$2');
}
