import { RdError } from '../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../src/json.ts';
import type { FieldType } from '../src/settings/field.ts';
import type { GivenFlag } from './command.ts';
import { parseBoolean, quote } from './literals.ts';

// Settings that hold several values, on the command line: an entry per occurrence of the flag, or JSON.

/** The list: each occurrence is an entry or a JSON array of entries. Throws `ERR_SETTINGS_INVALID`. */
export function listOf(flags: readonly GivenFlag[]): string[] {
  return flags.flatMap((flag) => {
    const text = String(flag.value);
    if (!text.trimStart().startsWith('[')) return [text];
    const value = fromJson(text);
    if (!Array.isArray(value)) throw wrong(flag, 'be an entry or a JSON array of strings');
    return value.map((entry) => {
      if (typeof entry !== 'string') throw wrong(flag, 'be an entry or a JSON array of strings');
      return entry;
    });
  });
}

/**
 * The entries of a map: each occurrence is `KEY=VALUE` or a JSON object, later ones win. `null` as value stands for taking the
 * entry away. Throws `ERR_SETTINGS_INVALID`.
 */
export function mapOf(flags: readonly GivenFlag[], type: FieldType): JsonObject {
  const booleans = type === 'map<string,boolean>';
  const expected = booleans
    ? 'be KEY=true, KEY=false, KEY=null, or a JSON object of these'
    : 'be KEY=TEXT or a JSON object';
  const entries = new Map<string, JsonValue>();
  for (const flag of flags) {
    const words = entriesOf(String(flag.value), booleans);
    if (!words) throw wrong(flag, expected);
    for (const [key, value] of words) {
      const fits = value === null || typeof value === (booleans ? 'boolean' : 'string');
      if (key === '' || !fits) throw wrong(flag, expected);
      entries.set(key, value);
    }
  }
  return Object.fromEntries(entries);
}

function entriesOf(text: string, booleans: boolean): [string, JsonValue][] | undefined {
  if (text.trimStart().startsWith('{')) {
    const value = fromJson(text);
    return isObject(value) ? Object.entries(value) : undefined;
  }
  // Names of images and checks may hold an equals sign; values never do.
  const at = text.lastIndexOf('=');
  if (at < 0) return undefined;
  return [[text.slice(0, at), entryValue(text.slice(at + 1), booleans)]];
}

/** What is no boolean stays a text, which the caller refuses. */
function entryValue(word: string, boolean: boolean): JsonValue {
  if (word === 'null') return null;
  try {
    return boolean ? parseBoolean(word) : word;
  } catch {
    return word;
  }
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function wrong({ typed, value }: GivenFlag, expected: string): RdError {
  return new RdError(
    'ERR_SETTINGS_INVALID',
    `invalid value for option --${typed}: ${quote(String(value))}; must ${expected}`,
  );
}
