import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { FieldType, SettingFlag } from '../../src/settings/field.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import type { Flag, FlagTable, GivenFlag } from '../command.ts';
import { SETTING_FLAGS } from './flags.gen.ts';
import { parseBoolean, quote } from './literals.ts';
import type { PlatformName } from './platform.ts';

/** A setting's flag as the generator writes it. */
export interface SettingFlagRow extends SettingFlag {
  path: SettingPath;
  type: FieldType;
  since: number;
  summary: string;
}

/** The flags of `set` and `start`. One that is not for this platform parses, is not shown, and is refused when it is used. */
export const SETTING_FLAG_TABLE: FlagTable = Object.fromEntries(
  SETTING_FLAGS.map((row) => [row.name, declaration(row)]),
);

function declaration(row: SettingFlagRow): Flag {
  // The values are checked later, when all of the command line is known to be right, and with another text.
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

/** How several entries are written. */
function entries(type: FieldType): string {
  if (type === 'string[]') return ' Repeatable, or one JSON array; replaces the whole list.';
  if (!type.startsWith('map')) return '';
  return ' Repeatable, or one JSON object; null as value removes an entry, the others stay.';
}

/**
 * One setting that was named on the command line, under whichever name. Of several occurrences the last one counts; those of
 * a list or a map add up.
 */
export interface GivenSetting {
  row: SettingFlagRow;
  typed: string;
  value: JsonValue;
}

/**
 * The settings that were given, in the order of the schema, checked against platform and values; the first mistake stops.
 * Throws `ERR_SETTINGS_INVALID` with the texts of the cli facts, 6.2 and 6.3. Nothing has been sent then.
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

/** What to do about a word of its own that was meant as the value of a boolean: `--kubernetes.enabled false`. */
export function valueAdvice([word]: readonly string[], given: readonly GivenFlag[]): string | undefined {
  if (word !== 'true' && word !== 'false') return undefined;
  const switches = given.filter(({ value }) => typeof value === 'boolean').map(({ typed }) => typed);
  const name = switches.length === 1 ? switches[0] : 'FLAG';
  return `The value of a boolean comes after an equals sign: --${name}=${word}`;
}

function settingValue(row: SettingFlagRow, flags: readonly GivenFlag[], last: GivenFlag): JsonValue {
  if (row.type === 'string[]') return listOf(flags);
  return row.type.startsWith('map') ? mapOf(flags, row.type) : last.value;
}

const EXTENSIONS =
  'Extensions are changed by `rdctl extension install` and `uninstall`, or by a profile and `rdctl apply`.';

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

/** `'a' or 'b'`; `'a', 'b', or 'c'`. */
function choice(values: readonly string[]): string {
  const quoted = values.map((value) => `'${value}'`);
  const last = quoted.pop() ?? '';
  if (quoted.length === 0) return last;
  return quoted.length === 1 ? `${quoted[0]} or ${last}` : `${quoted.join(', ')}, or ${last}`;
}

/**
 * The body of the PUT: `version` first, then only what was named. With the live settings at hand maps go whole, because not
 * every application keeps the entries that a body leaves out.
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

// Settings that hold several values, on the command line: an entry per occurrence of the flag, or JSON.

/** The list: each occurrence is an entry or a JSON array of entries. Throws `ERR_SETTINGS_INVALID`. */
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
 * The entries of a map: each occurrence is `KEY=VALUE` or a JSON object, later ones win. `null` as value stands for taking the
 * entry away. Throws `ERR_SETTINGS_INVALID`.
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
