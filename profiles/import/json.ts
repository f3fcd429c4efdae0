import { RdError } from '../../src/errors.ts';
import { isObject, isTooDeep, type JsonValue, MOST_LEVELS } from '../../src/json.ts';
import { decoded } from '../../src/policies/policy-file.ts';
import { formatFindings } from '../../src/settings/finding.ts';
import { quotedName } from '../../src/settings/printable.ts';
import type { Importer } from './importer.ts';
import { partOfName } from './part-name.ts';
import { repeatedKey } from './repeated-key.ts';

/**
 * A deployment file of Linux: bare settings as JSON. It looks like the bare settings that `rdctl apply` takes, so that only its
 * name or its user can tell.
 */
export const jsonImporter: Importer = {
  name: 'json',
  platform: 'linux',
  recognises(bytes) {
    if (!/^\s*\{/.test(new TextDecoder().decode(bytes.subarray(0, 1024)))) return false;
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
    if (value === undefined) {
      const { parseDocument } = await import('../../src/settings/parse.ts');
      throw wrong('it is not JSON', formatFindings(parseDocument(text, label).findings));
    }
    if (!isObject(value)) throw wrong('it does not hold an object');
    const repeated = repeatedKey(text);
    // A key that stands there twice means one thing to a person and another to a parser.
    if (repeated !== undefined) throw wrong(`the key ${quotedName(repeated)} stands twice in one object`);
    const part = partOfName(label);
    return [{ ...(part ? { part } : {}), source: label, settings: value, lost: [] }];
  },
};

function jsonOf(bytes: Uint8Array): JsonValue | undefined {
  const text = decoded(bytes);
  if (text === undefined || isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
