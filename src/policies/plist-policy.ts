import { decoded } from '../../profiles/formats/format.ts';
import { isDictionary, isOther, type PlistValue, xmlPlist } from '../../profiles/formats/plist-xml.ts';
import { isObject, isTooDeep, type JsonObject, type JsonValue, MOST_LEVELS } from '../json.ts';
import { writtenFile } from './json-policy.ts';
import { invalidPolicy, type WrittenPolicy } from './policy.ts';
import { type PolicyOwner, readPolicyFile } from './policy-file.ts';
import type { PolicyPrograms } from './programs.ts';

/**
 * Reads a profile of macOS. XML is read here; what management software writes is mostly binary, and the system's own program
 * turns that into JSON. Throws `ERR_PROFILE_INVALID`; `undefined` when there is no file.
 */
export async function readPlistPolicy(
  path: string,
  programs: PolicyPrograms,
  owner: PolicyOwner,
): Promise<WrittenPolicy | undefined> {
  const bytes = await readPolicyFile(path, owner);
  if (bytes === undefined) return undefined;
  const wrong = (reason: string, cause?: unknown) =>
    invalidPolicy(`Error loading plist file ${path}: ${reason}`, [], cause);
  const text = decoded(bytes);
  const value =
    text !== undefined && isXml(text) ? await fromXml(text, wrong) : await fromProgram(path, programs, wrong);
  if (!isObject(value)) throw wrong('it does not hold a dictionary');
  return writtenFile(path, value);
}

type Wrong = (reason: string, cause?: unknown) => Error;

/** True for what this reader understands itself: XML in UTF-8. */
function isXml(text: string): boolean {
  const head = text.trimStart();
  if (!head.startsWith('<')) return false;
  const encoding = /^<\?xml[^>]*encoding\s*=\s*["']([^"']+)["']/i.exec(head)?.[1];
  return encoding === undefined || /^(?:utf-8|us-ascii)$/i.test(encoding);
}

async function fromXml(text: string, wrong: Wrong): Promise<JsonValue> {
  const value = await xmlPlist(text).catch((cause: unknown) => {
    throw wrong(cause instanceof Error ? cause.message : String(cause), cause);
  });
  return jsonOf(value, [], wrong);
}

async function fromProgram(path: string, programs: PolicyPrograms, wrong: Wrong): Promise<JsonValue> {
  let text: string;
  try {
    text = await programs.plistAsJson(path);
  } catch (cause) {
    throw wrong(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (isTooDeep(text)) throw wrong(`it nests deeper than ${MOST_LEVELS} levels`);
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which may hold a password.
    throw wrong('plutil did not answer JSON');
  }
}

/** A property list may hold dates and data; no setting has such a value. */
function jsonOf(value: PlistValue, above: readonly string[], wrong: Wrong): JsonValue {
  if (typeof value !== 'object') return value;
  if (isDictionary(value)) {
    const entries = [...value].map(([name, inner]): [string, JsonValue] => [
      name,
      jsonOf(inner, [...above, name], wrong),
    ]);
    return Object.fromEntries(entries) satisfies JsonObject;
  }
  if (isOther(value)) throw wrong(`"${above.join('.')}" is ${value.other}, which no setting can be`);
  return value.map((item, index) => jsonOf(item, [...above, String(index)], wrong));
}
