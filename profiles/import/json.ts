import { RdError } from '../../src/errors.ts';
import { isObject, isTooDeep, type JsonValue, MOST_LEVELS } from '../../src/json.ts';
import { jsonProblem } from '../../src/policies/json-text.ts';
import { decoded } from '../../src/policies/policy-file.ts';
import { formatFinding } from '../../src/settings/finding.ts';
import type { Importer } from './importer.ts';
import { partOfName } from './part-name.ts';

/**
 * A deployment file of Linux: bare settings as JSON. It looks like the bare settings that `rdctl apply` takes, so that only its
 * name or its user can tell.
 */
export const jsonImporter: Importer = {
  name: 'json',
  platform: 'linux',
  recognises(bytes) {
    if (!BEGIN.test(new TextDecoder().decode(bytes.subarray(0, 1024)))) return false;
    const value = jsonOf(bytes);
    return isObject(value) && !('apiVersion' in value || 'kind' in value || isObject(value.settings));
  },
  async read(bytes, label) {
    const wrong = (reason: string, details: readonly string[] = []) =>
      new RdError('ERR_PROFILE_INVALID', `${label} is not a deployment profile that can be read: ${reason}`, {
        details,
      });
    const text = decoded(bytes);
    if (text === undefined) throw wrong('it is not UTF-8');
    if (isTooDeep(text)) throw wrong(`it nests deeper than ${MOST_LEVELS} levels`);
    const value = jsonOf(bytes);
    const problem = jsonProblem(text);
    if (problem) {
      const line = formatFinding({ file: label, pointer: '', ...problem });
      throw wrong(value === undefined ? 'it is not JSON' : 'a key stands twice in it', [line]);
    }
    if (!isObject(value)) throw wrong('it does not hold an object');
    const part = partOfName(label);
    const note = `${label} begins with a byte order mark; the application does not start with such a file.`;
    const notes = hasByteOrderMark(bytes) ? { notes: [note] } : {};
    return [{ ...(part ? { part } : {}), source: label, settings: value, lost: [], ...notes }];
  },
};

/** True for what begins as JSON does and has a mistake; YAML may begin like that, too. */
export function isBrokenJson(bytes: Uint8Array): boolean {
  return BEGIN.test(new TextDecoder().decode(bytes.subarray(0, 1024))) && jsonOf(bytes) === undefined;
}

/** True for a mark in UTF-8, which this tool reads over and the application does not. */
export function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

const BEGIN = /^\s*\{/;

function jsonOf(bytes: Uint8Array): JsonValue | undefined {
  const text = decoded(bytes);
  if (text === undefined || isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
