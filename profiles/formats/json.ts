import { RdError } from '../../src/errors.ts';
import { isObject, isTooDeep, type JsonObject, type JsonValue, MOST_LEVELS } from '../../src/json.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { jsonProblem } from '../../src/settings/json-problem.ts';
import { put } from '../../src/settings/own.ts';
import { IS_UTF16, isUtf16 } from '../../src/settings/source-text.ts';
import { decodeText, type Exporter, type Importer, partOfName } from './format.ts';
import { type DeploymentTree, isTree } from './tree.ts';

/**
 * Reads a deployment file for Linux: bare settings as JSON. `rdctl apply` accepts the same content as plain settings, so only the file name or an
 * option distinguishes the two.
 */
export const jsonImporter: Importer = {
  name: 'json',
  platform: 'linux',
  recognizes(bytes) {
    if (!BEGIN.test(new TextDecoder().decode(bytes.subarray(0, 1024)))) return false;
    const value = readValue(bytes);
    return isObject(value) && !('apiVersion' in value || 'kind' in value || isObject(value.settings));
  },
  async read(bytes, label) {
    const wrong = (reason: string, details: readonly string[] = []) =>
      new RdError('ERR_PROFILE_INVALID', `${label} is not a deployment profile that can be read: ${reason}`, {
        details,
      });
    const value = jsonObject(bytes, label, wrong, 'it has a duplicate key');
    const product = otherProduct(value);
    if (product !== undefined) throw wrong(product);
    const part = partOfName(label);
    const note = `${label} begins with a byte order mark; the application does not start with such a file.`;
    const notes = hasByteOrderMark(bytes) ? { notes: [note] } : {};
    return [{ ...(part ? { part } : {}), source: label, settings: value, lost: [], ...notes }];
  },
};

/**
 * Parses the object in a JSON file without ambiguities.
 * @param wrong creates the error from the reason, a clause, and the line.
 * @param ambiguous the reason for a text that a parser would accept.
 */
export function jsonObject(
  bytes: Uint8Array,
  file: string,
  wrong: (reason: string, details?: readonly string[]) => Error,
  ambiguous: string,
): JsonObject {
  if (isUtf16(bytes)) throw wrong(`it ${IS_UTF16}`);
  const text = decodeText(bytes);
  if (text === undefined) throw wrong('it is not UTF-8');
  if (isTooDeep(text)) throw wrong(`it nests deeper than ${MOST_LEVELS} levels`);
  const value = parseJsonText(text);
  // The parser's message quotes the text, which may contain a password, and the parser accepts duplicate keys.
  const problem = jsonProblem(text);
  if (problem) {
    const line = formatFinding({ file, pointer: '', ...problem });
    throw wrong(value === undefined ? 'it is not JSON' : ambiguous, [line]);
  }
  if (!isObject(value)) throw wrong('it does not contain an object');
  return value;
}

/**
 * Recognizes a file that certainly belongs to another product, and names that product in a clause. Docker Desktop's `admin-settings.json` has some
 * names in common with our settings, and locks with the value: if it were read as ours, settings that it leaves to users would be locked.
 */
export function otherProduct(value: JsonValue | undefined): string | undefined {
  if (!isObject(value) || 'apiVersion' in value || 'kind' in value) return undefined;
  const isAdmin =
    'configurationFileVersion' in value ||
    Object.values(value).some((each) => isObject(each) && typeof each.locked === 'boolean' && 'value' in each);
  return isAdmin
    ? 'it is the admin-settings.json of Docker Desktop, whose names and locks mean something else; write its settings as a profile (docs/profiles.md)'
    : undefined;
}

/** True for text that starts like JSON and is not valid JSON; it may be YAML. */
export function isBrokenJson(bytes: Uint8Array): boolean {
  return BEGIN.test(new TextDecoder().decode(bytes.subarray(0, 1024))) && readValue(bytes) === undefined;
}

/** True if the file starts with a UTF-8 byte order mark, which this tool skips and the application rejects. */
export function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

const BEGIN = /^\s*\{/;

/** Parses a value; returns undefined if the text is not JSON. */
export function parseJsonText(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readValue(bytes: Uint8Array): JsonValue | undefined {
  const text = decodeText(bytes);
  return text === undefined || isTooDeep(text) ? undefined : parseJsonText(text);
}

/** Formats a deployment profile as JSON in schema order, indented by two spaces, with a final newline. Can represent any text. */
export function jsonText(tree: DeploymentTree): string {
  return `${JSON.stringify(objectOf(tree), undefined, 2)}\n`;
}

function objectOf(tree: DeploymentTree): JsonObject {
  const object: JsonObject = {};
  for (const [name, value] of tree) put(object, name, isTree(value) ? objectOf(value) : (value as JsonValue));
  return object;
}

/** Writes a file below `/etc` on Linux. */
export const jsonExporter: Exporter = {
  name: 'json',
  platform: 'linux',
  fileName: (part) => `${part}.json`,
  text: jsonText,
};
