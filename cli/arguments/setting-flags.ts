import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { FieldType, SettingFlagRow } from '../../src/settings/field.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import type { Flag, FlagTable, GivenFlag } from '../command.ts';
import { SETTING_FLAGS } from './flags.gen.ts';
import { type PlatformName, parseBoolean, quote } from './values.ts';

/** The flags of `set` and `start`. A flag for another platform parses but is hidden, and using it is an error. */
export const SETTING_FLAG_TABLE: FlagTable = Object.fromEntries(
  SETTING_FLAGS.map((row) => [row.name, declaration(row)]),
);

function declaration(row: SettingFlagRow): Flag {
  // Values are checked later, once the whole command line is valid, with a different message.
  const values = row.values ? ` One of ${row.values.join(', ')}.` : '';
  const { aliases, hidden, platforms } = row;
  const offers = row.values ? { offers: row.values } : {};
  return {
    ...form(row.type),
    ...offers,
    summary: `${row.summary}${values}${entries(row.type)}`,
    aliases,
    hidden,
    platforms,
  };
}

function form(type: FieldType) {
  switch (type) {
    case 'boolean':
    case 'integer':
    case 'string':
      return { type };
    case 'string[]':
      return { type: 'strings', placeholder: 'ENTRY' } as const;
    case 'map<string,boolean>':
    case 'map<string,string>':
      return { type: 'strings', placeholder: 'KEY=VALUE' } as const;
  }
}

/** Explains how to pass several entries. */
function entries(type: FieldType): string {
  if (type === 'string[]') return ' Repeatable, or one JSON array; replaces the whole list.';
  if (!type.startsWith('map')) return '';
  return ' Repeatable, or one JSON object; null removes an entry; the others stay unchanged.';
}

/** A setting named on the command line, under its name or an alias. The last occurrence wins; occurrences of a list or a map add up. */
export interface GivenSetting {
  row: SettingFlagRow;
  typed: string;
  value: JsonValue;
}

/**
 * Returns the given settings in schema order, checked against platform and allowed values; stops at the first mistake, before anything is sent.
 * Throws `ERR_SETTINGS_INVALID`.
 */
export function givenSettings(given: readonly GivenFlag[], here: PlatformName): GivenSetting[] {
  const found = new Map<string, GivenFlag[]>();
  for (const flag of given) found.set(flag.name, [...(found.get(flag.name) ?? []), flag]);
  return SETTING_FLAGS.flatMap((row) => {
    const flags = found.get(row.name) ?? [];
    const last = flags.at(-1);
    if (!last) return [];
    check(row, last, here);
    return [{ row, typed: last.typed, value: settingValue(row, flags, last) }];
  });
}

/** Returns advice for a separate word that was meant as the value of a boolean: `--kubernetes.enabled false`. */
export function valueAdvice([word]: readonly string[], given: readonly GivenFlag[]): string | undefined {
  if (word !== 'true' && word !== 'false') return undefined;
  const switches = given.filter(({ value }) => typeof value === 'boolean').map(({ typed }) => typed);
  const name = switches.length === 1 ? switches[0] : 'FLAG';
  return `Specify boolean values with an equals sign: --${name}=${word}`;
}

function settingValue(row: SettingFlagRow, flags: readonly GivenFlag[], last: GivenFlag): JsonValue {
  if (row.type === 'string[]') return listOf(flags);
  return row.type.startsWith('map') ? mapOf(flags, row.type) : last.value;
}

const EXTENSIONS = 'Use `rdctl extension install` and `uninstall`, or `rdctl apply` with a profile.';

function check(row: SettingFlagRow, flag: GivenFlag, here: PlatformName): void {
  if (!row.platforms.some((each) => each === here.platform)) {
    throw new RdError('ERR_SETTINGS_INVALID', `option --${flag.typed} is not available on ${here.text}`, {
      ...(row.path === 'application.extensions.installed' ? { advice: EXTENSIONS } : {}),
    });
  }
  if (row.values && !row.values.includes(String(flag.value))) {
    throw new RdError(
      'ERR_SETTINGS_INVALID',
      `invalid value for option --${flag.typed}: ${quote(String(flag.value))}; must be ${choice(row.values)}`,
    );
  }
}

/** Formats a choice: `'a' or 'b'`; `'a', 'b', or 'c'`. */
function choice(values: readonly string[]): string {
  const quoted = values.map((value) => `'${value}'`);
  const last = quoted.pop() ?? '';
  if (quoted.length === 0) return last;
  return quoted.length === 1 ? `${quoted[0]} or ${last}` : `${quoted.join(', ')}, or ${last}`;
}

/**
 * Returns the body of the PUT: `version` first, then only the named settings. Given the live settings, maps are sent whole, because some applications
 * drop the entries that a body omits.
 */
export function settingsPayload(
  settings: readonly GivenSetting[],
  version: number = SCHEMA_VERSION,
  live: JsonObject = {},
): JsonObject {
  const payload: JsonObject = { version };
  for (const { row, value } of settings) {
    const stored = row.type.startsWith('map') ? leafAt(live, row.path) : undefined;
    setLeaf(payload, row.path, isObject(stored) && isObject(value) ? { ...stored, ...value } : value);
  }
  return payload;
}

// Settings that hold several values, on the command line: one entry per occurrence of the flag, or JSON.

/** Parses a list: each occurrence is an entry or a JSON array of entries. Throws `ERR_SETTINGS_INVALID`. */
function listOf(flags: readonly GivenFlag[]): string[] {
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
 * Parses a map: each occurrence is `KEY=VALUE` or a JSON object, and later ones win. A `null` value removes the entry. Throws `ERR_SETTINGS_INVALID`.
 */
function mapOf(flags: readonly GivenFlag[], type: FieldType): JsonObject {
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
  // Image and check names may contain an equals sign; values never do.
  const at = text.lastIndexOf('=');
  if (at < 0) return undefined;
  return [[text.slice(0, at), entryValue(text.slice(at + 1), booleans)]];
}

/** Parses the value of an entry. One that is not a boolean stays a string, which the caller rejects. */
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
