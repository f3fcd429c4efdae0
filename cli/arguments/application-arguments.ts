import { RdError } from '../../src/errors.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import type { SettingField } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { settingAt } from '../../src/settings/fields.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { copyOfObject } from '../../src/settings/own.ts';
import type { Flag, FlagTable, GivenFlag } from '../command.ts';
import { quote } from './values.ts';

// Setting paths as flag names: the arguments that Rancher Desktop's own `rdctl` passes to the application.

const NO_DIALOGS = 'no-modal-dialogs';

/** Setting paths as hidden flags, for a command that also has flags of its own. */
export const APPLICATION_FLAGS: FlagTable = Object.fromEntries([
  ...FIELDS.filter(isSettable).map(({ path, type, description }): [string, Flag] => [
    path,
    { type: type === 'boolean' ? 'boolean' : 'string', hidden: true, summary: description },
  ]),
  [NO_DIALOGS, { type: 'boolean', hidden: true, summary: 'Accepted for compatibility; there are no dialogs' }],
]);

/** The application arguments among the given flags. */
export function applicationWords(given: readonly GivenFlag[]): string[] {
  return given.flatMap(({ name, value }) =>
    Object.hasOwn(APPLICATION_FLAGS, name) ? [`--${name}=${String(value)}`] : [],
  );
}

/** Words that must not start a service, because people try the executable with them. */
const QUESTIONS: Readonly<Record<string, 'help' | 'version'>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
};

/** A parsed request to start the application. */
interface ApplicationRequest {
  /** Text to print instead of starting anything. */
  asks?: 'help' | 'version';
  /** Settings from the arguments, over those passed in; absent when there are neither. */
  settings?: JsonObject;
  noModalDialogs: boolean;
}

/**
 * Parses the arguments; the last occurrence of a name wins. Arguments before the first known one are skipped: they
 * belong to the launcher. `--help` and `--version` count wherever no value is expected.
 * @throws RdError `ERR_USAGE` for an unknown argument after a known one, for a section, and for a value of the wrong
 * kind.
 */
export function applicationRequest(words: readonly string[], others?: JsonObject): ApplicationRequest {
  const settings = copyOfObject(others ?? {});
  let noModalDialogs = false;
  let known = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    const [, name = '', inline] = /^--([^=]+)(?:=([\s\S]*))?$/.exec(word) ?? [];
    const field = settableField(name);
    const asks = QUESTIONS[word];
    if (asks) return { noModalDialogs, asks };
    if (!field && name !== NO_DIALOGS) {
      if (isSection(name)) throw new RdError('ERR_USAGE', `Can't overwrite existing setting ${quote(word)}`);
      if (known) throw new RdError('ERR_USAGE', `unknown argument ${quote(word)}`);
      continue;
    }
    known = true;
    const next = inline ?? valueAfter(words[at + 1], field);
    if (next !== undefined && inline === undefined) at += 1;
    if (field) setLeaf(settings, field.path, valueFor(field, next ?? bare(field)));
    else noModalDialogs = next === undefined || json(next, NO_DIALOGS, isBoolean, 'true or false') === true;
  }
  const none = others === undefined && Object.keys(settings).length === 0;
  return { noModalDialogs, ...(none ? {} : { settings }) };
}

function isSettable({ path }: SettingField): boolean {
  return path !== 'version';
}

function settableField(path: string): SettingField | undefined {
  const field = settingAt(path);
  return field && isSettable(field) ? field : undefined;
}

function isSection(path: string): boolean {
  return FIELDS.some((field) => field.path.startsWith(`${path}.`));
}

/** Returns the word if it is a value of the field. A switch stands alone unless such a value follows. */
function valueAfter(word: string | undefined, field: SettingField | undefined): string | undefined {
  if (field && field.type !== 'boolean') return word;
  return word === 'true' || word === 'false' ? word : undefined;
}

function bare({ path, type }: SettingField): string {
  if (type === 'boolean') return 'true';
  throw new RdError('ERR_USAGE', `no value for the argument "--${path}"`);
}

function valueFor({ path, type }: SettingField, text: string): JsonValue {
  switch (type) {
    case 'string':
      return text;
    case 'boolean':
      return json(text, path, isBoolean, 'true or false');
    case 'integer':
      return json(text, path, (value) => typeof value === 'number', 'a number');
    case 'string[]':
      return json(text, path, Array.isArray, 'a JSON array');
    case 'map<string,boolean>':
    case 'map<string,string>':
      return json(text, path, (value) => typeof value === 'object' && value !== null, 'a JSON object');
  }
}

function isBoolean(value: JsonValue): boolean {
  return typeof value === 'boolean';
}

function json(text: string, name: string, fits: (value: JsonValue) => boolean, expected: string): JsonValue {
  let value: JsonValue | undefined;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (value !== undefined && fits(value)) return value;
  throw new RdError('ERR_USAGE', `the argument "--${name}" takes ${expected}, not ${quote(text)}`);
}
