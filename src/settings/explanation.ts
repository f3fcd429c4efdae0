import type { Field, Platform } from './field.ts';
import { fieldAt, nearest } from './fields.ts';
import type { Finding } from './finding.ts';
import type { Issue } from './issue.ts';

const PLATFORM_NAMES: Readonly<Record<Platform, string>> = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' };
const LONGEST_QUOTE = 60;

/** An issue in the words for someone who wrote a document. `written` is the value's text in it, where it is known. */
export function explain(issue: Issue, written: string | undefined): Omit<Finding, 'pointer'> {
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
      return { message: wrongValue(issue.path, written), ...expectation(issue, field, written) };
    default:
      return { message: issue.message.replace(/\.$/, ''), ...expected };
  }
}

/** `"kubernetes.port" cannot be 70000`, without the value where it is a secret or not one short line. */
export function wrongValue(path: string, written: string | undefined): string {
  if (fieldAt(path)?.sensitive || written === undefined || written === '' || written.includes('\n')) {
    return `"${path}" has a value that it cannot have`;
  }
  const quoted = written.length > LONGEST_QUOTE ? `${written.slice(0, LONGEST_QUOTE)}…` : written;
  return `"${path}" cannot be ${quoted}`;
}

/**
 * What to write where a text belongs and a plain scalar stands: YAML took it for a number or a boolean, and its own letters
 * say what was meant.
 */
export function asText(path: string, written = ''): string {
  const plain = /^[\w.+-]{1,40}$/.test(written) && written !== 'null' && !fieldAt(path)?.sensitive;
  return plain ? `a text: write "${written}"` : 'a text';
}

function expectation(issue: Issue, field: Field | undefined, written = ''): Pick<Finding, 'expected' | 'suggestion'> {
  const expected = issue.expected === undefined ? {} : { expected: issue.expected };
  if (!field) return expected;
  if (issue.code === 'enum') {
    const near = nearest(unquoted(written), field.enum ?? []);
    return { ...expected, ...(near === undefined ? {} : { suggestion: `"${near}"` }) };
  }
  if (issue.expected === 'a text') return { expected: asText(issue.path, written) };
  return expected;
}

function platformsOf(field: Field | undefined): string {
  return (field?.platforms ?? []).map((platform) => PLATFORM_NAMES[platform]).join(' and ');
}

function unquoted(text: string): string {
  return text.replace(/^(["'])(.*)\1$/, '$2');
}
