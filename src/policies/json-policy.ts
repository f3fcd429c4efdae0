import { decoded } from '../../profiles/formats/format.ts';
import { jsonProblem } from '../../profiles/formats/json.ts';
import { isObject, isTooDeep, type JsonValue, MOST_LEVELS } from '../json.ts';
import { formatFinding } from '../settings/finding.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import { invalidPolicy, type WrittenPolicy } from './policy.ts';
import { type PolicyOwner, readPolicyFile } from './policy-file.ts';

/** Reads a profile of Linux. Throws `ERR_PROFILE_INVALID`; `undefined` when there is no file. */
export async function readJsonPolicy(path: string, owner: PolicyOwner): Promise<WrittenPolicy | undefined> {
  const bytes = await readPolicyFile(path, owner);
  if (bytes === undefined) return undefined;
  const wrong = (reason: string, details: readonly string[] = []) =>
    invalidPolicy(`Error parsing deployment profile from ${path}: ${reason}`, details);
  const text = decoded(bytes);
  if (text === undefined) throw wrong('it is not UTF-8');
  if (isTooDeep(text)) throw wrong(`it nests deeper than ${MOST_LEVELS} levels`);
  const value = parsed(text);
  // The parser's message quotes the text, which may hold a password, and the parser takes the last of a key that stands twice.
  const problem = jsonProblem(text);
  if (problem) {
    throw wrong(value === undefined ? 'it is not JSON' : 'it has mistakes', [
      formatFinding({ file: path, pointer: '', ...problem }),
    ]);
  }
  if (!isObject(value)) throw wrong('it does not hold an object');
  return writtenFile(path, value);
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
