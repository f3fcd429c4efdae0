import { RdError } from '../../errors.ts';
import { KEY_TYPE, type PublicKey, parseKey, RELEASE_NAMESPACE } from './ssh-signature.ts';

/** The principal of release signers in a file of allowed signers; `ssh-keygen -Y verify -I release` looks for the same. */
const PRINCIPAL = 'release';

/** The only accepted options. They change nothing here, because signatures for anything else never count. */
const OPTIONS: readonly string[] = [`namespaces="${RELEASE_NAMESPACE}"`];

/**
 * Returns the keys that may sign releases from a text in OpenSSH's format of allowed signers: those of the lines for `release`. Other lines are for
 * other purposes, and are skipped.
 * @param from the source of the text, for messages.
 * @throws RdError `ERR_UPGRADE_REFUSED` for a line for `release` that is not understood completely, and if there is none: an overlooked
 *   restriction or key would change who is trusted.
 */
export function parseAllowedSigners(text: string, from: string): PublicKey[] {
  const lines = text.split(/\r?\n/).map((line, index) => ({ words: line.trim().split(/[ \t]+/), number: index + 1 }));
  const keys = lines.flatMap(({ words: [principals = '', ...rest], number }) => {
    if (principals === KEY_TYPE) throw wrong(`${from}:${number} has a key without a name`);
    if (principals.startsWith('#') || !principals.split(',').includes(PRINCIPAL)) return [];
    return [keyOf(rest, `${from}:${number}`)];
  });
  if (keys.length === 0) throw wrong(`${from} has no key for releases`);
  return keys;
}

function keyOf(words: readonly string[], place: string): PublicKey {
  const [first = ''] = words;
  const [type = '', base64 = ''] = OPTIONS.includes(first) ? words.slice(1) : words;
  if (type !== KEY_TYPE) {
    const what = /^(?:ssh|ecdsa|sk)-/.test(type) ? 'a key of the type' : 'the option';
    throw wrong(`${place} has ${what} ${JSON.stringify(type)}, which is not supported`);
  }
  const key = parseKey(base64);
  if (!key) throw wrong(`${place} has a damaged key`);
  return key;
}

function wrong(message: string): RdError {
  return new RdError('ERR_UPGRADE_REFUSED', message, {
    advice: `A key for releases is one line: ${PRINCIPAL} ${KEY_TYPE} AAAA…`,
  });
}
