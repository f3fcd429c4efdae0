import { isObject, isTooDeep, type JsonValue, MOST_LEVELS } from '../json.ts';
import { formatFinding, formatFindings } from '../settings/finding.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import { jsonProblem } from './json-text.ts';
import { invalidPolicy, type WrittenPolicy } from './policy.ts';
import { decoded, readPolicyFile } from './policy-file.ts';

/** Reads a profile of Linux. Throws `ERR_PROFILE_INVALID`; `undefined` when there is no file. */
export async function readJsonPolicy(path: string): Promise<WrittenPolicy | undefined> {
  const bytes = await readPolicyFile(path);
  if (bytes === undefined) return undefined;
  const wrong = (reason: string, details: readonly string[] = []) =>
    invalidPolicy(`Error parsing deployment profile from ${path}: ${reason}`, details);
  const text = decoded(bytes);
  if (text === undefined) throw wrong('it is not UTF-8');
  if (isTooDeep(text)) throw wrong(`it nests deeper than ${MOST_LEVELS} levels`);
  const { parseDocument } = await import('../settings/parse.ts');
  const document = parseDocument(text, path);
  const lines = formatFindings(document.findings);
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which may hold a password.
    const problem = jsonProblem(text);
    throw wrong('it is not JSON', problem && [formatFinding({ file: path, pointer: '', ...problem })]);
  }
  if (!isObject(value)) throw wrong('it does not hold an object');
  // A key that stands there twice means one thing to a person and another to a parser.
  if (document.value !== undefined && lines.length > 0) throw wrong('it has mistakes', lines);
  return writtenFile(path, value);
}

/** A profile out of a file whose names are those of the settings. */
export function writtenFile(path: string, settings: WrittenPolicy['settings']): WrittenPolicy {
  return {
    source: path,
    settings,
    nameOf: (names) => names.join('.'),
    quote: (json) => json,
    heading: `Error in deployment file ${path}:`,
    noVersion:
      `Invalid deployment file ${path}: no version specified. ` +
      `Add a version field to make it valid (current version is ${SCHEMA_VERSION}).`,
    problems: [],
    passedOver: [],
  };
}
