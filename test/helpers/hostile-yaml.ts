const MEBIBYTE = 1024 * 1024;

/** Documents of at most 1 MiB that took parsers minutes, all memory, or the stack, by their kind. */
export const HOSTILE_YAML: Readonly<Record<string, string>> = {
  'many keys': Array.from({ length: 90_000 }, (_, index) => `k${index}: 1`).join('\n'),
  'only brackets': '['.repeat(MEBIBYTE - 1),
  'nested mappings': '{a: '.repeat(200_000),
  'nested lists': `${'- '.repeat(400_000)}x`,
  'many anchors': Array.from({ length: 30_000 }, (_, index) => `k${index}: &a${index} 1`).join('\n'),
  'aliases of aliases': [
    'a0: &a0 [x, x, x, x, x, x, x, x, x]',
    ...Array.from({ length: 40 }, (_, index) => `a${index + 1}: &a${index + 1} [${`*a${index}, `.repeat(9)}]`),
  ].join('\n'),
  'aliases of a long text': `a: &a "${'x'.repeat(500_000)}"\nb: [${'*a,'.repeat(9_000)}]`,
  'many mistakes': '}'.repeat(MEBIBYTE - 1),
  'many directives': `${'%A\n'.repeat(300_000)}---\na`,
  'many commas': `${'{a: '.repeat(99)}${',,'.repeat(100_000)}`,
};
