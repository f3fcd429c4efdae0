import { RdError } from '../../errors.ts';
import { isObject, parseJson } from '../../json.ts';

const KEY = 'currentContext';

/** How to undo a selection. It is stored in our context, so that it is removed with it. */
export type Selection =
  /** There was no file. */
  | { how: 'created' }
  /** There was no such key. */
  | { how: 'inserted' }
  /** The key was `default`, empty, or the name of no context. */
  | { how: 'replaced'; previous: string }
  /** The file was empty but for this white space, which docker takes for a missing file. */
  | { how: 'filled'; previous: string }
  /** The user selected it; the previous value is unknown. */
  | { how: 'chosen' };

/**
 * Returns the context that `config.json` selects; `default` when it does not.
 * @throws RdError `ERR_IO` when the file cannot be parsed; such a file is never changed.
 */
export function currentContext(text: string | undefined): string {
  const value = text === undefined ? undefined : parse(text)[KEY];
  if (value === undefined || value === '') return 'default';
  if (typeof value !== 'string') throw unusable(`"${KEY}" in it is not a string`);
  return value;
}

/** Selects a context. The rest of the text stays byte for byte. */
export function select(text: string | undefined, name: string): { text: string; selection: Selection } {
  if (text === undefined || isEmpty(text)) {
    const whole = `${JSON.stringify({ [KEY]: name }, null, 2)}\n`;
    return { text: whole, selection: text === undefined ? { how: 'created' } : { how: 'filled', previous: text } };
  }
  const previous = parse(text)[KEY];
  if (typeof previous !== 'string') {
    return { text: withMember(text, KEY, name), selection: { how: 'inserted' } };
  }
  return { text: withValue(text, KEY, name), selection: { how: 'replaced', previous } };
}

/** Returns the text as it was before `select`, with other changes since; undefined to delete the file. */
export function deselect(text: string, selection: Selection): string | undefined {
  if (selection.how === 'replaced') return withValue(text, KEY, selection.previous);
  if (selection.how === 'chosen') return withValue(text, KEY, 'default');
  const rest = withoutMember(text, KEY);
  if (membersOf(rest).length > 0) return rest;
  if (selection.how === 'filled') return selection.previous;
  return selection.how === 'created' ? undefined : rest;
}

/** Parses a selection in our context's metadata. */
export function selectionFrom(value: unknown): Selection | undefined {
  if (!isObject(value)) return undefined;
  const { how, previous } = value;
  if (how === 'created' || how === 'inserted' || how === 'chosen') return { how };
  if (typeof previous !== 'string') return undefined;
  if (how === 'filled') return isEmpty(previous) ? { how, previous } : undefined;
  return how === 'replaced' ? { how, previous } : undefined;
}

/** The program of a credential helper, and the registries that it serves; if absent, all others. */
export interface CredentialHelper {
  program: string;
  registries: string[];
}

/** Returns the helpers that `config.json` names, each once. Throws `ERR_IO` when the file cannot be parsed. */
export function credentialHelpers(text: string | undefined): CredentialHelper[] {
  const { credsStore, credHelpers } = text === undefined ? {} : parse(text);
  const byProgram = new Map<string, string[]>();
  const add = (name: unknown, ...registries: string[]) => {
    if (typeof name !== 'string' || name === '') return;
    const program = `docker-credential-${name}`;
    byProgram.set(program, [...(byProgram.get(program) ?? []), ...registries]);
  };
  add(credsStore);
  for (const [registry, name] of isObject(credHelpers) ? Object.entries(credHelpers) : []) add(name, registry);
  return [...byProgram].map(([program, registries]) => ({ program, registries }));
}

function isEmpty(text: string): boolean {
  return /^[ \t\r\n]*$/.test(text);
}

function parse(text: string): Record<string, unknown> {
  if (isEmpty(text)) return {};
  const value = parseJson(text);
  // Parser errors would quote the text, which may contain credentials.
  if (value === undefined) throw unusable('it is not JSON');
  if (!isObject(value)) throw unusable('it does not hold an object');
  if (membersOf(text).filter(({ key }) => key === KEY).length > 1) throw unusable(`"${KEY}" is in it twice`);
  return value;
}

function unusable(why: string): RdError {
  return new RdError('ERR_IO', `the configuration of docker was not changed: ${why}`, {
    advice: 'Correct the file; the context is selected at the next start.',
  });
}

/** Position of a top-level member in a JSON text. */
interface Member {
  key: string;
  /** Offset of the opening quote of the key. */
  from: number;
  /** Offset after the last character of the value. */
  to: number;
}

/** Returns the top-level members in order. The text must be a valid JSON object. */
function membersOf(text: string): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let key: { text: string; from: number } | undefined;
  let end = 0;
  const finish = () => {
    if (key) members.push({ key: key.text, from: key.from, to: end });
    key = undefined;
  };
  // The pattern repeats no group for each letter: engines give up on such patterns for long texts.
  for (const { 0: token, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    if (depth === 1 && token === ',') finish();
    else if (depth === 0 && closes) finish();
    else if (depth === 1 && key === undefined && token.startsWith('"')) key = { text: JSON.parse(token), from: index };
    else end = index + token.length;
    if (token === '{' || token === '[') depth += 1;
  }
  return members;
}

/** Adds a member after the last one, in the layout of the first. The rest of the text stays as it is. */
function withMember(text: string, key: string, value: string): string {
  const members = membersOf(text);
  const first = members[0];
  const last = members.at(-1);
  const open = text.indexOf('{') + 1;
  const member = `${JSON.stringify(key)}: ${JSON.stringify(value)}`;
  if (!first || !last) return text.slice(0, open) + member + text.slice(open);
  return `${text.slice(0, last.to)},${text.slice(open, first.from)}${member}${text.slice(last.to)}`;
}

/** Removes a member with its comma. */
function withoutMember(text: string, key: string): string {
  const members = membersOf(text);
  const at = members.findIndex((member) => member.key === key);
  const member = members[at];
  if (!member) return text;
  const before = members[at - 1];
  const after = members[at + 1];
  if (before) return text.slice(0, before.to) + text.slice(member.to);
  return text.slice(0, member.from) + text.slice(after?.from ?? member.to);
}

/** Replaces the value of an existing member. */
function withValue(text: string, key: string, value: string): string {
  const member = membersOf(text).find((each) => each.key === key);
  if (!member) return text;
  const whole = text.slice(member.from, member.to);
  const [head = ''] = /^"[^"\\]*(?:\\.[^"\\]*)*"\s*:\s*/.exec(whole) ?? [];
  return text.slice(0, member.from) + head + JSON.stringify(value) + text.slice(member.to);
}
