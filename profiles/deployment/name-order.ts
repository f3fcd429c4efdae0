/** Pairs of a name and anything, sorted as the compatible tool sorts names: in lower case and by code points (tool facts, 7.4). */
export function sortedByName<T>(pairs: Iterable<readonly [string, T]>): [string, T][] {
  const keyed = Array.from(pairs, ([name, value]) => ({ name, value, key: lowerCase(name) }));
  // Units of UTF-16 have another order than code points, but not among letters of ASCII, which nearly all names are made of.
  const compare = keyed.every(({ key }) => ASCII.test(key)) ? byUnits : byCodePoints;
  return keyed.sort((a, b) => compare(a.key, b.key) || byUnits(a.name, b.name)).map(({ name, value }) => [name, value]);
}

const ASCII = /^[\0-\x7f]*$/;

/** Each character by itself, and as one: no final sigma, and `i` for `İ`. */
function lowerCase(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  return Array.from(name, (sign) => String.fromCodePoint(sign.toLowerCase().codePointAt(0) ?? 0)).join('');
}

function byUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Bytes of UTF-8 have the order of the code points. */
function byCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
