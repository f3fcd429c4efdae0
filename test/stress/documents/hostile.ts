/** Bytes of most documents; the limits are at a mebibyte. */
const SIZE = 1_200_000;

/** Numbers in [0, 1) from a seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Pieces with a meaning to a YAML or JSON parser, or to code that reads the values. */
export const PIECES = [
  ...[
    '[',
    ']',
    '{',
    '}',
    '- ',
    '? ',
    ': ',
    ',',
    '\n',
    '\n  ',
    '\t',
    '|\n',
    '>-\n',
    '"',
    "'",
    '#',
    '%A\n',
    '---\n',
    '...\n',
  ],
  ...['&a ', '*a ', '<<: *a\n', '!!str ', '!x ', '!<tag> ', '\\', '\\u0000', '\ufeff', '\u0000', '\u0085', '\u2028'],
  ...[
    '__proto__: ',
    '"__proto__":',
    'constructor: ',
    'a: ',
    '"a":',
    '1e999',
    '-0',
    '0x1p4',
    '9'.repeat(400),
    '.inf',
    '~',
    'null',
  ],
  ...[
    'icon: ',
    '"icon":"/icon.svg",',
    '"vm":',
    '"composefile":',
    'services:\n',
    'x'.repeat(200),
    '\u202e',
    '\u009b31m',
  ],
];

/** A large document that repeats a pattern, or mixes pieces. */
export function hostile(next: () => number): Buffer {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  const size = Math.floor(SIZE * next() ** 3) + 1;
  const kind = next();
  const parts: string[] = [];
  let length = 0;
  // One repeated pattern finds superlinear behavior; a mixture finds the unexpected.
  const pattern = Array.from({ length: 1 + Math.floor(next() * 4) }, () => pick(PIECES)).join('');
  const begin = kind < 0.1 ? '{"icon":"/icon.svg","x":' : '';
  while (length < size) {
    const piece = kind < 0.6 ? pattern : pick(PIECES);
    parts.push(piece);
    length += piece.length;
  }
  const bytes = Buffer.from(begin + parts.join(''));
  // Sometimes it is not UTF-8.
  if (next() < 0.1) bytes[Math.floor(next() * bytes.length)] = 0xff;
  return bytes;
}

/** A valid document of which a short part is repeated until it is large. */
export function inflated(sample: Buffer, next: () => number): Buffer {
  const from = Math.floor(next() * sample.length);
  const part = sample.subarray(from, from + 1 + Math.floor(next() * 80));
  const many = Array.from({ length: Math.floor(SIZE / 2 / part.length) }, () => part);
  return Buffer.concat([sample.subarray(0, from), ...many, sample.subarray(from)]);
}
