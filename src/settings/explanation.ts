import { type Field, PLATFORM_NAMES } from './field.ts';
import { fieldAt, nearest } from './fields.ts';
import type { Finding } from './finding.ts';
import type { Issue } from './issue.ts';

const LONGEST_QUOTE = 60;
/** Maximum length of a message, including what it quotes. */
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
  /** The allowed values of an enum. */
  allowed?: readonly string[];
}

/** An issue, worded for the author of a document. `written` is the value's source text, if known. */
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
      return { message: shortened(issue.message.replace(/\.$/, '')), ...expected };
  }
}

/** An API message quotes the whole value, which may be as long as the document. */
function shortened(message: string): string {
  if (message.length <= LONGEST_MESSAGE) return message;
  return `${message.slice(0, LONGEST_MESSAGE - LONGEST_QUOTE)}…${message.slice(-LONGEST_QUOTE)}`;
}

/**
 * `"kubernetes.port" cannot be 70000`, omitting the value if it is a secret or not one short line, with a suggestion.
 * `path` is the dotted path in the document.
 */
export function wrongValue(path: string, written: string | undefined, { expected, allowed = [] }: Wanted): Explanation {
  const wanted = expected === undefined ? {} : { expected };
  if (fieldAt(path)?.sensitive || written === undefined || written === '' || written.includes('\n')) {
    return { message: `"${path}" has a value that it cannot have`, ...wanted };
  }
  const quoted = written.length > LONGEST_QUOTE ? `${written.slice(0, LONGEST_QUOTE)}…` : written;
  const suggestion = nearest(unquoted(written), allowed) ?? otherKind(written, expected);
  return { message: `"${path}" cannot be ${quoted}`, ...wanted, ...(suggestion === undefined ? {} : { suggestion }) };
}

/**
 * The same text as another type: `"1.30"` where a string is expected and YAML read a number, or an unnecessarily quoted
 * `true`.
 */
function otherKind(written: string, expected = ''): string | undefined {
  if (expected === 'a text') {
    return /^[\w.+-]{1,40}$/.test(written) && written !== 'null' ? `"${written}"` : undefined;
  }
  const inner = unquoted(written);
  if (expected.startsWith('true')) return BOOLEAN_WORDS[inner.toLowerCase()];
  if (inner === written) return undefined;
  return expected.startsWith('an integer') && /^-?\d{1,15}$/.test(inner) ? inner : undefined;
}

function platformsOf(field: Field | undefined): string {
  return (field?.platforms ?? []).map((platform) => PLATFORM_NAMES[platform]).join(' and ');
}

function unquoted(text: string): string {
  return text.replace(/^(["'])(.*)\1$/, '$2');
}
