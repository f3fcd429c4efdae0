import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { type KubeEntry, withEntry, withoutEntry } from '../../src/features/host-integration/kube-entries.ts';
import { runs } from '../helpers/rounds.ts';

const ENTRY: KubeEntry = {
  name: 'rdctl',
  cluster: { 'certificate-authority-data': 'Q0E=', server: 'https://127.0.0.1:6443' },
  user: { 'client-certificate-data': 'Q0VSVA==', 'client-key-data': 'S0VZ' },
};
const LISTS = ['clusters', 'contexts', 'users'] as const;

/**
 * A piece of a file, and why a file with it is refused: a list in brackets that has items, one over several lines, a list that is none, and
 * the end of a document, behind which nothing can be added.
 */
interface Piece {
  text: string;
  refusal?: RegExp;
}

/** Comments, which may be indented as nothing around them is, and blank lines. */
const between = fc
  .array(fc.constantFrom('\n', '# c\n', '  # two\n', '    # four: [\n', '   \n', '      # - six\n'), { maxLength: 2 })
  .map((lines) => lines.join(''));
const behind = fc.constantFrom('', '', '', '  ', ' # why', '\t# a tab');

const member = fc.oneof(
  fc.constantFrom(
    '{server: "https://work.example"} # flow',
    '{ }',
    '"a, b"',
    '|\n      #!/bin/sh\n      echo',
    '>-\n      folded\n\n      text',
  ),
  fc.constantFrom(
    '\n      server: https://work.example\n      # inner',
    '\n      list:\n      - a\n      - [b,\n         c]',
  ),
);

/** An item of a list, at column 0. */
const item = fc.oneof(
  fc
    .tuple(fc.constantFrom('work', '"home"', "'x y'", '1'), member, behind)
    .map(([name, value, comment]) => `- name: ${name}${comment}\n  key: ${value}`),
  fc.constantFrom('- {name: flow, cluster: {server: x}} # one', '- {name: flow,\n   user: {}}', '-\n  name: below'),
);

const block = fc
  .tuple(fc.array(fc.tuple(between, item, behind), { minLength: 1, maxLength: 3 }), fc.nat(2))
  .map(([items, depth]): Piece => {
    const text = items.map(
      ([above, lines, comment]) => `\n${above}${lines}${lines.includes('\n  key: |') ? '' : comment}`,
    );
    return { text: text.join('').replace(/^(?!$)/gm, '  '.repeat(depth)) };
  });

const list: fc.Arbitrary<Piece> = fc.oneof(
  { weight: 4, arbitrary: block },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom('', ' null', ' ~', ' []', ' [ ]', '   []', ' Null'), behind)
      .map(([text, comment]) => ({ text: `${text}${comment}` })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Piece>(
      { text: ' [{name: a}]', refusal: /style of JSON/ },
      { text: ' [\n  ]', refusal: /layout/ },
      { text: ' text', refusal: /is not a list/ },
    ),
  },
);

const selection = fc
  .tuple(fc.constantFrom('', ' null', ' ~', ' ""', " ''", ' work', ' "work"', '   ""'), behind)
  .map(([text, comment]): Piece => ({ text: `${text}${comment}` }));

const values: Record<string, fc.Arbitrary<Piece>> = {
  apiVersion: fc.constantFrom({ text: ' v1' }, { text: ' "v1" # one' }),
  kind: fc.constant({ text: ' Config' }),
  preferences: fc.constantFrom({ text: ' {}' }, { text: '\n  colors: true' }),
  extra: fc.constantFrom(
    { text: ' |\n  text\n  more' },
    { text: ' |+\n  kept\n\n' },
    { text: ' [a,\n  b]' },
    { text: '' },
  ),
  clusters: list,
  contexts: list,
  users: list,
  'current-context': selection,
};

/** A file with some of the keys in any order. */
const written = fc
  .record({
    keys: fc.shuffledSubarray(Object.keys(values), { minLength: 1 }),
    pieces: fc.record(values),
    spaces: fc.array(between, { minLength: 10, maxLength: 10 }),
    quote: fc.boolean(),
    start: fc.constantFrom('', '', '', '---\n', '# head\n\n', '\ufeff', '%YAML 1.2\n---\n'),
    end: fc.constantFrom('', '', '', '', '...\n'),
  })
  .map(({ keys, pieces, spaces, quote, start, end }): Piece => {
    const lines = keys.map((key, index) => {
      const name = quote && index % 2 === 1 ? `"${key}"` : key;
      return `${spaces[index]}${name}:${pieces[key]?.text}\n`;
    });
    const refusals = LISTS.filter((key) => keys.includes(key)).flatMap((key) => pieces[key]?.refusal ?? []);
    if (end !== '' && [...LISTS, 'current-context'].some((key) => !keys.includes(key))) refusals.push(/layout/);
    const text = `${start}${lines.join('')}${spaces[9]}${end}`;
    return refusals.length === 0
      ? { text }
      : { text, refusal: new RegExp(refusals.map((each) => each.source).join('|')) };
  });

const blank = fc
  .tuple(fc.constantFrom('', '\ufeff', '# mine\n', '\n'), between)
  .map(([start, rest]): Piece => ({ text: `${start}${rest}` }));

/** A file without our entries, their name as the selected context, and marks of an earlier edit, in any layout. */
const kubeconfig = fc
  .record({
    file: fc.oneof({ weight: 8, arbitrary: written }, { weight: 1, arbitrary: blank }),
    isOpen: fc.boolean(),
    isWindows: fc.boolean(),
  })
  .map(({ file, isOpen, isWindows }): Piece => {
    const text = isOpen ? file.text.replace(/\n$/, '') : file.text;
    return { ...file, text: isWindows ? text.replaceAll('\n', '\r\n') : text };
  });

test('a kubeconfig has our entries with everything of its own, and is restored byte for byte without them', () => {
  fc.assert(
    fc.property(kubeconfig, ({ text, refusal }) => {
      if (refusal) {
        expect(() => withEntry(text, ENTRY)).toThrow(refusal);
        return;
      }
      const merged = withEntry(text, ENTRY);
      expect(withoutEntry(merged, ENTRY.name)).toBe(text);
      const [value, before] = [parse(merged), parse(text) ?? {}];
      const added = {
        clusters: { cluster: ENTRY.cluster },
        users: { user: ENTRY.user },
        contexts: { context: { cluster: 'rdctl', user: 'rdctl' } },
      };
      const header = Object.keys(before).length === 0 ? { apiVersion: 'v1', kind: 'Config' } : {};
      const lists = LISTS.map((kind) => [kind, [...(before[kind] ?? []), { name: 'rdctl', ...added[kind] }]]);
      expect(value).toEqual({
        ...header,
        ...before,
        ...Object.fromEntries(lists),
        'current-context': before['current-context'] || 'rdctl',
      });
      expect(withEntry(merged, ENTRY)).toBe(merged);
      const renewed = withEntry(merged, { ...ENTRY, user: { 'client-key-data': 'TkVX' } });
      expect(withoutEntry(renewed === 'foreign' ? '' : renewed, ENTRY.name)).toBe(text);
    }),
    { numRuns: runs(300) },
  );
});
