/** Pairs of a name and anything, sorted as the compatible tool sorts names: in lower case and by code points (tool facts, 7.4). */
export function sortedByName<T>(pairs: Iterable<readonly [string, T]>): [string, T][] {
  return Array.from(pairs, ([name, value]) => ({ name, value, key: lowerCase(name) }))
    .sort((a, b) => Buffer.compare(a.key, b.key) || (a.name < b.name ? -1 : 1))
    .map(({ name, value }) => [name, value]);
}

/** Each character by itself, and as one: no final sigma, and `i` for `İ`. Bytes of UTF-8 have the order of their code points. */
function lowerCase(name: string): Buffer {
  return Buffer.from(Array.from(name, (sign) => String.fromCodePoint(sign.toLowerCase().codePointAt(0) ?? 0)).join(''));
}
