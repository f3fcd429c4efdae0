import { expect, test } from 'vitest';
import { readCredentials } from '../../src/drivers/clusters/k3s/api.ts';
import { parseMetadata } from '../../src/features/extensions/metadata.ts';
import { HOSTILE_YAML } from '../helpers/hostile-yaml.ts';
import { rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';

/** Bytes of most documents; the limits are at a mebibyte. */
const SIZE = 1_200_000;

/** Numbers in [0, 1) from a seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Pieces with a meaning to a YAML or JSON parser, or to code that reads the values. */
const PIECES = [
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

function hostile(next: () => number): Buffer {
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

test('foreign documents are read or refused within the limits', async () => {
  const next = random(testSeed());
  const documents: Buffer[] = Object.values(HOSTILE_YAML).map((text) => Buffer.from(text));
  while (documents.length < rounds(40, 200)) documents.push(hostile(next));
  const first = process.memoryUsage().rss;
  for (const bytes of documents) {
    const text = bytes.toString('utf8');
    const began = performance.now();
    const metadata = parseMetadata(text.slice(0, 1024 * 1024), 'linux');
    expect(Object.keys(metadata)).toHaveLength(1);
    expect(readCredentials(text)).toBeUndefined();
    expect(performance.now() - began).toBeLessThan(5_000);
  }
  expect(Object.prototype).not.toHaveProperty('a');
  expect(process.memoryUsage().rss - first).toBeLessThan(512 * 1024 * 1024);
});
