import { RdError } from '../../src/errors.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import type { Field } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { fieldAt } from '../../src/settings/fields.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { copyOfObject } from '../../src/settings/own.ts';
import type { Flag, FlagTable, GivenFlag } from '../command.ts';
import { quote } from './literals.ts';

// The arguments that the compatible tool starts its application with (cli facts, 6.6 and 6.9): setting paths as names.

const NO_DIALOGS = 'no-modal-dialogs';

/** The same names as hidden flags, for a command that has others too. */
export const APPLICATION_FLAGS: FlagTable = Object.fromEntries([
  ...FIELDS.filter(isSettable).map(({ path, type, description }): [string, Flag] => [
    path,
    { type: type === 'boolean' ? 'boolean' : 'string', hidden: true, summary: description },
  ]),
  [
    NO_DIALOGS,
    { type: 'boolean', hidden: true, summary: 'First value of the transient setting; there are no dialogs' },
  ],
]);

/** The application's arguments among the flags that were given. */
export function applicationWords(given: readonly GivenFlag[]): string[] {
  return given.flatMap(({ name, value }) =>
    Object.hasOwn(APPLICATION_FLAGS, name) ? [`--${name}=${String(value)}`] : [],
  );
}

/** A person who tries the executable asks first; an answer must not be a service that runs. */
const QUESTIONS: Readonly<Record<string, 'help' | 'version'>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
};

/** What the arguments ask for. */
interface ApplicationRequest {
  /** Nothing is to be started: this is to be printed. */
  asks?: 'help' | 'version';
  /** Over those that were handed in; absent when there are neither. */
  settings?: JsonObject;
  noModalDialogs: boolean;
}

/**
 * Reads the arguments; the last one of a name counts. What comes before the first argument that is known
 * is passed over: it belongs to whatever started the application. A question for help or the version is one wherever no value is due.
 * @throws RdError `ERR_USAGE` for an argument that is not known after one that is, for a section, and for a value of the wrong kind.
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

function isSettable({ path }: Field): boolean {
  return path !== 'version';
}

function settableField(path: string): Field | undefined {
  const field = fieldAt(path);
  return field && isSettable(field) ? field : undefined;
}

function isSection(path: string): boolean {
  return FIELDS.some((field) => field.path.startsWith(`${path}.`));
}

/** A switch stands alone, unless a value of its kind follows. */
function valueAfter(word: string | undefined, field: Field | undefined): string | undefined {
  if (field && field.type !== 'boolean') return word;
  return word === 'true' || word === 'false' ? word : undefined;
}

function bare({ path, type }: Field): string {
  if (type === 'boolean') return 'true';
  throw new RdError('ERR_USAGE', `no value for the argument "--${path}"`);
}

function valueFor({ path, type }: Field, text: string): JsonValue {
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
