/** Characters: clients read some kilobytes of headers and no more. */
const LIMIT = 4000;
const MORE = encodeURIComponent('…');

/** Value of `Rdctl-Ignored-Keys`: the keys, percent-encoded, as far as they fit; an ellipsis stands for the rest. */
export function ignoredKeysHeader(keys: readonly string[]): string {
  let value = '';
  for (const key of keys) {
    const next = `${value}${value === '' ? '' : ', '}${encoded(key)}`;
    if (next.length > LIMIT) return value === '' ? MORE : `${value}, ${MORE}`;
    value = next;
  }
  return value;
}

/** JSON may hold half a surrogate pair, which has no encoding; it becomes the replacement character. */
function encoded(key: string): string {
  return encodeURIComponent(Buffer.from(key).toString());
}
