const SIZE = /^(\d+(?:\.\d+)?) ?([kmgtpezy]?)(i?b)?$/i;
const SCALES = 'kmgtpezy';

/**
 * Bytes of a size such as `100GiB`, `1.5 tb` or `1234`; `undefined` for anything else. Binary units (`ib`) count in powers
 * of 1024, the others in powers of 1000; letter case does not count. A fraction of a byte is rounded.
 */
export function parseByteSize(text: string): number | undefined {
  // Longer texts are no sizes, and the expression need not look at them.
  const match = text.length > 64 ? null : SIZE.exec(text);
  if (!match) return undefined;
  const [, digits = '', scale = '', unit = ''] = match;
  const base = unit.length === 2 ? 1024 : 1000;
  const bytes = Math.round(Number(digits) * base ** (SCALES.indexOf(scale.toLowerCase() || ' ') + 1));
  return Number.isFinite(bytes) ? bytes : undefined;
}
