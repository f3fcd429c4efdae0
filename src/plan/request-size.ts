import { RdError } from '../errors.ts';

/**
 * Limits of a request: keys outside of lists, keys and elements within lists, and characters of keys and texts. All are far more than anyone writes.
 */
const MOST = { keys: 2_000, listed: 10_000, characters: 1024 * 1024 };

/**
 * Rejects oversized requests. A plan is computed in one go, while the service does nothing else.
 * @throws RdError `ERR_SETTINGS_INVALID`.
 */
export function refuseTooLarge(body: unknown): void {
  const found = { keys: 0, listed: 0, characters: 0 };
  const count = (value: unknown, inList: boolean): void => {
    if (typeof value === 'string') found.characters += value.length;
    if (typeof value !== 'object' || value === null) return;
    const isList = Array.isArray(value);
    const inner: [string, unknown][] = Object.entries(value);
    found[isList || inList ? 'listed' : 'keys'] += inner.length;
    for (const [key, each] of inner) {
      if (!isList) found.characters += key.length;
      count(each, isList || inList);
    }
  };
  count(body, false);
  if (found.keys > MOST.keys || found.listed > MOST.listed) {
    throw tooLarge(
      `the request has ${found.keys} keys, and ${found.listed} more parts in lists; the most are ${MOST.keys} and ${MOST.listed}`,
    );
  }
  if (found.characters > MOST.characters) {
    throw tooLarge(
      `the keys and texts of the request have ${found.characters} characters; the most are ${MOST.characters}`,
    );
  }
}

function tooLarge(message: string): RdError {
  return new RdError('ERR_SETTINGS_INVALID', message, { advice: 'Shorten its longest map, list or text.' });
}
