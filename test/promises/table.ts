import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** When a promise has to hold; CONTRIBUTING.md says what each word means. */
export const CONDITIONS = [
  'once',
  'second',
  'kill',
  'stop',
  'neighbour',
  'twoAtOnce',
  'otherDoor',
  'comesAndGoes',
  'offline',
  'fullDisk',
  'version',
] as const;

/** Why a sentence is no promise about what this tool does. */
export const KINDS = ['definition', 'instruction', 'upstream', 'reason', 'limit', 'measured'] as const;

type Condition = (typeof CONDITIONS)[number];
/** `test/FILE.test.ts › part of the title`, several of them, or why the condition does not apply. */
type Held = string | string[] | { not: string };
type Meaning = { says: (typeof KINDS)[number] } | { [condition in Condition]?: Held };
/** A sentence, or the rows of a generated table by pattern. */
export type Entry = ({ text: string } | { pattern: string }) & Meaning;

/** The entries of a table. @throws Error for an invalid one. */
export function readTable(file: string): Entry[] {
  const entries = parse(readFileSync(file, 'utf8')) as Record<string, unknown>[];
  for (const entry of entries) {
    const wrong = mistakeOf(entry);
    if (wrong) throw new Error(`${file}: ${wrong}: ${JSON.stringify(entry)}`);
  }
  return entries as Entry[];
}

/** The tests named by an entry, under any condition. */
export function testsNamed(entry: Entry): string[] {
  if ('says' in entry) return [];
  return CONDITIONS.flatMap((condition) => {
    const held = entry[condition] ?? [];
    return typeof held === 'string' ? [held] : Array.isArray(held) ? held : [];
  });
}

function mistakeOf({ text, pattern, says, ...held }: Record<string, unknown>): string | undefined {
  if (typeof (text ?? pattern) !== 'string' || (text !== undefined && pattern !== undefined)) {
    return 'needs a text, or a pattern';
  }
  const unknown = Object.keys(held).find((key) => !CONDITIONS.includes(key as Condition));
  if (unknown) return `${unknown} is no condition (${CONDITIONS.join(', ')})`;
  if (says !== undefined && !KINDS.includes(says as never)) return `says one of ${KINDS.join(', ')}`;
  if ((says !== undefined) === Object.keys(held).length > 0) return 'needs either what it says, or tests that hold it';
  const tests = Object.values(held).filter((each) => !isExcuse(each));
  if (says === undefined && tests.length === 0) return 'needs a test';
  return tests.every(isTests) ? undefined : 'a condition names tests, or says `not: why`';
}

const isExcuse = (held: unknown) =>
  typeof held === 'object' && held !== null && 'not' in held && typeof held.not === 'string';

const isTests = (held: unknown) =>
  typeof held === 'string' ||
  (Array.isArray(held) && held.length > 0 && held.every((each) => typeof each === 'string'));
