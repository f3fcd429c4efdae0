import { isObject, type JsonValue } from '../json.ts';
import { type CheckFinding, checkSettings } from '../settings/check.ts';
import { type Finding, formatFindings } from '../settings/issue.ts';
import { parseDocument } from '../settings/parse.ts';

// Loaded only for hand-edited settings files: the parser with positions is large.

interface CheckOptions {
  host: Parameters<typeof checkSettings>[1];
  /** True for problems that invalidate the file. */
  counts(code: string): boolean;
}

/** Finds duplicate keys and similar mistakes, which `JSON.parse` ignores. */
export function documentMistakes(file: string, text: string): Finding[] {
  const document = parseDocument(text, file);
  // Without a value, the text exceeds the limits of this parser, although the other one accepted it.
  return document.value === undefined ? [] : document.findings;
}

/** Formats all errors in a settings file that is JSON: `file:line:column: message (/pointer)…`. */
export async function settingsMistakes(
  file: string,
  text: string,
  value: JsonValue,
  { host, counts }: CheckOptions,
): Promise<string[]> {
  if (!isObject(value)) {
    return formatFindings([
      { file, line: 1, column: 1, pointer: '', message: 'not an object with settings', expected: '{ … }' },
    ]);
  }
  const document = parseDocument(text, file);
  const { findings } = await checkSettings({ document, at: '', settings: value }, host);
  const counted = findings.filter((finding) => isCounted(finding, counts));
  const all = [...documentMistakes(file, text), ...counted];
  // An older file may contain values that its own version accepts and the newest does not.
  const other = { file, line: 1, column: 1, pointer: '', message: 'migration does not produce valid settings' };
  return formatFindings(all.length > 0 ? all : [other]);
}

function isCounted({ code }: CheckFinding, counts: CheckOptions['counts']): boolean {
  return code === 'version' || code === 'shape' || counts(code);
}
