import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';
import { membersOf, withMember, withoutMember, withValue } from './json-members.ts';

const KEY = 'currentContext';

/** How a selection is undone: kept in our context, so that it goes where the context goes. */
export type Selection =
  /** There was no file. */
  | { how: 'created' }
  /** There was no such key. */
  | { how: 'inserted' }
  /** The key said so: `default`, or nothing. */
  | { how: 'replaced'; previous: string }
  /** The user did it, and what was there before is not known. */
  | { how: 'chosen' };

/**
 * The context that `config.json` selects: `default` where it does not say.
 * @throws RdError `ERR_IO` when it cannot be understood; such a file is nobody's to change.
 */
export function currentContext(text: string | undefined): string {
  const value = text === undefined ? undefined : parse(text)[KEY];
  if (value === undefined || value === '') return 'default';
  if (typeof value !== 'string') throw unusable(`"${KEY}" in it is not a string`);
  return value;
}

/** Selects a context. Everything else in the text stays as it is, byte for byte. */
export function select(text: string | undefined, name: string): { text: string; selection: Selection } {
  if (text === undefined) {
    return { text: `${JSON.stringify({ [KEY]: name }, null, 2)}\n`, selection: { how: 'created' } };
  }
  const previous = parse(text)[KEY];
  if (typeof previous !== 'string') {
    return { text: withMember(text, KEY, name), selection: { how: 'inserted' } };
  }
  return { text: withValue(text, KEY, name), selection: { how: 'replaced', previous } };
}

/** The text as it was before `select`, with what others have changed since; `undefined` when the file goes too. */
export function deselect(text: string, selection: Selection): string | undefined {
  if (selection.how === 'replaced') return withValue(text, KEY, selection.previous);
  if (selection.how === 'chosen') return withValue(text, KEY, 'default');
  const rest = withoutMember(text, KEY);
  return selection.how === 'created' && membersOf(rest).length === 0 ? undefined : rest;
}

/** What was read from a context of ours. */
export function selectionFrom(value: unknown): Selection | undefined {
  if (!isObject(value)) return undefined;
  const { how, previous } = value;
  if (how === 'created' || how === 'inserted' || how === 'chosen') return { how };
  return how === 'replaced' && typeof previous === 'string' ? { how, previous } : undefined;
}

function parse(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // It may hold credentials: no parser gets to quote it.
    throw unusable('it is not JSON');
  }
  if (!isObject(value)) throw unusable('it does not hold an object');
  if (membersOf(text).filter(({ key }) => key === KEY).length > 1) throw unusable(`"${KEY}" stands in it twice`);
  return value;
}

function unusable(why: string): RdError {
  return new RdError('ERR_IO', `the configuration of docker was not changed: ${why}`, {
    advice: 'Correct the file; the context is selected at the next start.',
  });
}
