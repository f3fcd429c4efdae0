import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { markdownPromises } from './promises/sentences.ts';
import { CONDITIONS, type Entry, KINDS, readTable, testsNamed } from './promises/table.ts';
import { hasTest } from './promises/titles.ts';

/** Where people read what they may rely on: data, security, and the first page. */
const DOCUMENTS = ['README.md', ...['security', 'transactions', 'homes', 'snapshots'].map((name) => `docs/${name}.md`)];
/** Allowed in place of `once`. */
const ALTERNATIVES = `\`${CONDITIONS.join('`, `')}\` name tests, or \`says:\` is ${KINDS.join(', ')}`;

const tableOf = (document: string) => `test/promises/${basename(document, '.md').toLowerCase()}.yaml`;

const holds = (entry: Entry, sentence: string) =>
  'text' in entry ? entry.text === sentence : new RegExp(entry.pattern).test(sentence);

/** The share of words that two sentences have in common. */
function likeness(one: string, other: string): number {
  const [mine, theirs] = [wordsOf(one), wordsOf(other)];
  const shared = [...mine].filter((word) => theirs.has(word)).length;
  return shared / (mine.size + theirs.size - shared);
}

const wordsOf = (text: string) => new Set(text.toLowerCase().split(/\W+/));

const closest = (text: string, sentences: string[]) =>
  [...sentences].sort((one, other) => likeness(other, text) - likeness(one, text))[0];

describe.each(DOCUMENTS)('%s', (document) => {
  const file = tableOf(document);
  let sentences: string[];
  let entries: Entry[];

  beforeAll(() => {
    sentences = markdownPromises(readFileSync(document, 'utf8'));
    entries = existsSync(file) ? readTable(file) : [];
  });

  test('every sentence that makes a promise is in the table', () => {
    const missing = sentences.filter((sentence) => !entries.some((entry) => holds(entry, sentence)));
    const paste = missing.map((text) => ({ text, once: 'test/FILE.test.ts › title of the test' }));
    expect(missing, `add to ${file} (${ALTERNATIVES}):\n\n${stringify(paste, { lineWidth: 0 })}\n`).toEqual([]);
  });

  test('every entry of the table quotes a sentence', () => {
    const gone = entries.filter((entry) => !sentences.some((sentence) => holds(entry, sentence)));
    const advice = gone.map((entry) => {
      const was = 'text' in entry ? entry.text : entry.pattern;
      return `- ${was}\n  closest: ${closest(was, sentences) ?? 'none'}\n`;
    });
    expect(gone, `no longer in ${document}; edit ${file}:\n\n${advice.join('')}`).toEqual([]);
  });

  test('no sentence has two entries', () => {
    const texts = entries.flatMap((entry) => ('text' in entry ? [entry.text] : []));
    expect(
      texts.filter((text, index) => texts.indexOf(text) !== index),
      file,
    ).toEqual([]);
  });

  test('every test named in the table exists', () => {
    const missing = entries.flatMap(testsNamed).filter((named) => !hasTest(named));
    expect(missing, `named in ${file}`).toEqual([]);
  });
});

test('every table belongs to a document', () => {
  const tables = readdirSync('test/promises').filter((name) => name.endsWith('.yaml'));
  const expected = DOCUMENTS.map((document) => basename(tableOf(document)));
  expect(tables.filter((name) => !expected.includes(name))).toEqual([]);
});
