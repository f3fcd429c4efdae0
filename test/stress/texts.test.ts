import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fold } from '../../cli/views/fold.ts';
import { isAllowed } from '../../src/allowed-images/allow-list.ts';
import { formatReference, parseReference } from '../../src/settings/image-reference.ts';
import { escapeHidden, escapeInLines, forTerminal, quoteName, stripHidden } from '../../src/settings/printable.ts';
import { anyText } from '../helpers/hostile-text.ts';
import { rounds } from '../helpers/rounds.ts';

/** What a terminal interprets or does not show: C0, C1, direction marks, zero-width characters, line and paragraph separators. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const TAGS = /[\u{e0000}-\u{e007f}\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}]/gu;
/** Styles that we write ourselves: at most a color. */
const ESCAPE = '\u001b\\[';
const STYLES = new RegExp(
  `\\r?\\n|\\t|${ESCAPE}(?:1|2|22|3[1239])m|^\\r${ESCAPE}2K|^${ESCAPE}H|${ESCAPE}K(?=\\n)|${ESCAPE}J$`,
  'g',
);

const SEQUENCES = [
  ...[
    '\u001b[2J',
    '\u001b[1;1H',
    '\u001b]0;x\u0007',
    '\u001b]8;;http://x\u001b\\',
    '\u001bP',
    '\u001b[6n',
    '\u009b31m',
    '\u001b[31;8m',
  ],
  ...[
    '\r',
    '\b',
    '\u0007',
    '\u0000',
    '\u007f',
    '\u0085',
    '\u0090',
    '\u009d',
    '\u202e',
    '\u2066',
    '\u200b',
    '\u2028',
    '\u001b',
  ],
  ...['[2K', '[31m', '[H', ']0;', 'm', '\\u001b', '\u001b[31m', '\r\n', '\n', '\t'],
];

const foreign = () =>
  fc
    .array(fc.oneof(fc.constantFrom(...SEQUENCES), anyText(), fc.string({ unit: 'binary', maxLength: 8 })), {
      maxLength: 8,
    })
    .map((parts) => parts.join(''));

test('nothing of a foreign text that a terminal interprets gets through, but for line ends and colors', () => {
  fc.assert(
    fc.property(foreign(), fc.integer({ min: 20, max: 100 }), (text, width) => {
      const plain = (shown: string) => shown.replace(TAGS, '');
      for (const shown of [escapeHidden(text), stripHidden(text), quoteName(text)])
        expect(plain(shown)).not.toMatch(HIDDEN);
      expect(plain(escapeInLines(text)).replace(/\r?\n|\t/g, '')).not.toMatch(HIDDEN);
      const shown = forTerminal(text);
      expect(plain(shown).replace(STYLES, '')).not.toMatch(HIDDEN);
      // What has been escaped stays so when it is escaped or folded again.
      expect(forTerminal(shown)).toBe(shown);
      expect(
        plain(fold(shown, width))
          .replace(STYLES, '')
          .replace(/[\r\n]/g, ''),
      ).not.toMatch(HIDDEN);
    }),
    { numRuns: rounds(10_000, 1_000_000), interruptAfterTimeLimit: rounds(10_000, 600_000) },
  );
});

const DIGEST = `sha256:${'a'.repeat(64)}`;
/** One repository, as clients may name it. */
const SPELLINGS = [
  'evil',
  'library/evil',
  'docker.io/evil',
  'docker.io/library/evil',
  'index.docker.io/evil',
  'DOCKER.IO/evil',
];
const HUBS = [
  'registry-1.docker.io/library/evil',
  'registry.hub.docker.com/library/evil',
  'docker.io:443/evil',
  'Index.Docker.io/library/evil',
];
const ALLOWED = [
  'good',
  'docker.io/library/good',
  'ghcr.io/',
  'a.b:5000/good:1',
  `evil@sha256:${'b'.repeat(64)}`,
  'evil:only',
  'docker.io/other/',
];
const MARKS = [
  '/',
  '//',
  '%2f',
  '%00',
  '@',
  ':',
  '.',
  '..',
  '/../',
  ' ',
  '\t',
  '\n',
  '\0',
  '\u200b',
  '\u0435',
  '\uff0f',
  '\u2024',
  '?',
  '#',
  'good',
  'ghcr.io/',
  'localhost/',
  '*',
];

/** Spellings and almost-spellings of an image that no pattern allows, with tags and digests. */
const evil = () =>
  fc
    .record({
      name: fc.constantFrom(...SPELLINGS, ...HUBS),
      tag: fc.constantFrom(
        '',
        ':latest',
        ':1',
        ':ONLY',
        ':only ',
        `@${DIGEST}`,
        `:only@${DIGEST}`,
        `@${DIGEST.toUpperCase()}`,
      ),
      edits: fc.array(fc.tuple(fc.nat(40), fc.constantFrom(...MARKS)), { maxLength: 2 }),
    })
    .map(({ name, tag, edits }) => ({
      plain: edits.length === 0,
      name: edits.reduce((text, [at, mark]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + mark + text.slice(place);
      }, name + tag),
    }));

/** Under which name a lenient client would ask for it. */
function lenient(name: string): string {
  const decoded = name.replace(/%([0-9a-f]{2})/gi, (_all, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return decoded
    .normalize('NFKC')
    .replace(/[\p{Cc}\p{Cf}\s]/gu, '')
    .toLowerCase();
}

test('no spelling of an image that is not allowed is allowed, and what is parsed is what is compared', () => {
  let parsed = 0;
  fc.assert(
    fc.property(evil(), ({ name, plain }) => {
      const reference = parseReference(name);
      const allowed = isAllowed(ALLOWED, name);
      if (reference === undefined) {
        expect(allowed).toBe(false);
        return;
      }
      parsed += 1;
      const canonical = formatReference(reference);
      // With a port, clients take a repository of one part as it is; Docker Hub has none.
      const isOnePart = reference.registry === 'docker.io' && !reference.repository.includes('/');
      if (!isOnePart) {
        // One canonical name, which means the same when it is read again.
        expect(parseReference(canonical)).toEqual(reference);
        expect(isAllowed(ALLOWED, canonical)).toBe(allowed);
      }
      if (plain) expect([name, allowed]).toEqual([name, name.endsWith(':only') && !isOnePart]);
      // Only what a client would take from where a pattern says, under the name that it says.
      if (allowed)
        expect(lenient(name)).toMatch(
          /^(?:ghcr\.io\/|(?:docker\.io\/|[a-z0-9.-]*docker\.(?:io|com)(?::443)?\/)?(?:(?:library\/)?(?:good|evil:only)|other\/))/,
        );
    }),
    { numRuns: rounds(20_000, 1_000_000), interruptAfterTimeLimit: rounds(10_000, 600_000) },
  );
  expect(parsed).toBeGreaterThan(1_000);
});
