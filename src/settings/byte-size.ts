const SIZE = /^(\d+(?:\.\d+)?) ?([kmgtpezy]?)(i?b)?$/i;
const SCALES = 'kmgtpezy';

/**
 * Parses a size such as `100GiB`, `1.5 tb` or `1234` to bytes; `undefined` for anything else. Binary units (`ib`) are
 * powers of 1024, the others powers of 1000; case-insensitive. Fractions of a byte are rounded.
 */
export function parseByteSize(text: string): number | undefined {
  // Longer strings are not sizes; skip the regular expression.
  const match = text.length > 64 ? null : SIZE.exec(text);
  if (!match) return undefined;
  const [, digits = '', scale = '', unit = ''] = match;
  const base = unit.length === 2 ? 1024 : 1000;
  const bytes = Math.round(Number(digits) * base ** (SCALES.indexOf(scale.toLowerCase() || ' ') + 1));
  return Number.isFinite(bytes) ? bytes : undefined;
}
