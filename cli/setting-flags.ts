import { RdError } from '../src/errors.ts';
import type { JsonObject } from '../src/json.ts';
import type { FieldType, SettingFlag } from '../src/settings/field.ts';
import type { SettingPath } from '../src/settings/settings.gen.ts';
import { SCHEMA_VERSION } from '../src/settings/settings.gen.ts';
import type { Flag, FlagTable, GivenFlag } from './command.ts';
import { SETTING_FLAGS } from './flags.gen.ts';
import { quote } from './literals.ts';
import type { PlatformName } from './platform-name.ts';

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
  return { type: flagType(row.type), summary: `${row.summary}${values}`, aliases, hidden, platforms };
}

function flagType(type: FieldType): 'boolean' | 'integer' | 'string' {
  if (type === 'boolean' || type === 'integer' || type === 'string') return type;
  throw new Error(`a setting of type ${type} cannot have a flag`);
}

/** One setting that was named on the command line. The last of several occurrences counts, under whichever name. */
export interface GivenSetting {
  row: SettingFlagRow;
  typed: string;
  value: GivenFlag['value'];
}

/**
 * The settings that were given, in the order of the schema, checked against platform and values; the first mistake stops.
 * Throws `ERR_SETTINGS_INVALID` with the texts of the cli facts, 6.2 and 6.3. Nothing has been sent then.
 */
export function givenSettings(given: readonly GivenFlag[], here: PlatformName): GivenSetting[] {
  const last = new Map(given.map((flag) => [flag.name, flag]));
  return SETTING_FLAGS.flatMap((row) => {
    const flag = last.get(row.name);
    if (!flag) return [];
    check(row, flag, here);
    return [{ row, typed: flag.typed, value: flag.value }];
  });
}

function check(row: SettingFlagRow, flag: GivenFlag, here: PlatformName): void {
  if (!row.platforms.some((each) => each === here.platform)) {
    throw new RdError('ERR_SETTINGS_INVALID', `option --${flag.typed} is not available on ${here.text}`);
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

/** The body of the PUT: `version` first, then only what was named. */
export function settingsPayload(settings: readonly GivenSetting[], version: number = SCHEMA_VERSION): JsonObject {
  const payload: JsonObject = { version };
  for (const { row, value } of settings) {
    const names = row.path.split('.');
    const leaf = names.pop() ?? '';
    let at: JsonObject = payload;
    for (const name of names) {
      const inner = at[name];
      const next: JsonObject = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : {};
      at[name] = next;
      at = next;
    }
    at[leaf] = value;
  }
  return payload;
}
