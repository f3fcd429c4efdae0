import { changesBetween } from '../../src/client/history.ts';
import { noteOtherApplication } from '../../src/client/rancher-desktop/index.ts';
import { type Caller, homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { readHistory } from '../../src/state/history-file.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand, type FlagTable, type Io } from '../command.ts';
import { defineGroup } from '../group.ts';
import { changesText, entryText, historyText } from '../views/history-text.ts';
import { jsonText } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

const FLAGS = {
  since: { type: 'duration', summary: 'Only changes of this time, such as 24h' },
  path: { type: 'string', summary: 'Only changes of this setting or section', placeholder: 'SETTING' },
  output: OUTPUT_FLAG,
} as const satisfies FlagTable;

const historyShow = defineCommand({
  name: 'history show',
  summary: 'Show one change in full',
  usage: 'GENERATION',
  description: `Prints who made the change, from which files, every old and new value, the steps it took and its result.
Exit codes: 0 success; 1 there is no such generation in the history.

  rdctl history show 12`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run({ args, flags, globals, io }) {
    const [word, ...more] = args;
    if (word === undefined || more.length > 0) throw usage('history show takes one generation');
    const entries = await historyHere({ globals, io });
    const entry = entryAt(entries, generationIn(word));
    if (flags.output === 'json') io.out(jsonText(documentOf('HistoryEntry', entry)));
    else io.say(entryText(entry, entry.loss ? await storedNames(io) : []));
    return 0;
  },
});

const historyDiff = defineCommand({
  name: 'history diff',
  summary: 'Show what changed between two generations',
  usage: 'A B',
  description: `Prints the net differences between the desired state after generation A and the one after generation B.
Exit codes: 0 no differences; 1 there is no such generation in the history; 2 there are differences.

  rdctl history diff 10 12`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run({ args, flags, globals, io }) {
    const [from, to, ...more] = args;
    if (from === undefined || to === undefined || more.length > 0) throw usage('history diff takes two generations');
    const entries = await historyHere({ globals, io });
    const a = entryAt(entries, generationIn(from)).generation;
    const b = entryAt(entries, generationIn(to)).generation;
    if (a > b) throw usage('history diff takes the older generation first');
    const changes = changesBetween(entries, a, b);
    io.out(
      flags.output === 'json' ? jsonText(documentOf('HistoryDiff', { from: a, to: b, changes })) : changesText(changes),
    );
    return changes.length === 0 ? 0 : 2;
  },
});

export const history = defineGroup({
  name: 'history',
  summary: 'Show what was changed, when, and by what',
  description: `Lists every change of settings and power state in this home, newest first. It reads a file, so no service has to run.
Secrets are masked. \`rdctl rollback\` goes back to an earlier generation.

  rdctl history --since 24h
  rdctl history --path containerEngine
  rdctl history show 12`,
  flags: FLAGS,
  classic: false,
  subcommands: [historyShow, historyDiff],
  async otherwise({ args, flags, globals, io }) {
    if (args.length > 0) throw usage(`history has no command ${JSON.stringify(args[0])}`);
    const entries = selectEntries(await historyHere({ globals, io }), flags);
    if (flags.output === 'json') io.out(jsonText(documentOf('History', { entries })));
    else if (entries.length === 0) noEntries(io, flags);
    else io.out(historyText(entries));
    return 0;
  },
});

/** Returns the history of this home. Notes that another application that runs has none. */
async function historyHere(caller: Pick<Caller, 'globals' | 'io'>): Promise<HistoryEntry[]> {
  await noteOtherApplication(
    caller,
    'It keeps no history; this one is of what rdctl itself has run here. `rdctl status` shows that application.',
  );
  return readHistory(homeOf(caller.io).historyFile);
}

/** Returns the names of the snapshots of this home. */
export async function storedNames(io: Io): Promise<string[]> {
  const { readCatalogue } = await import('../../src/features/snapshots/catalogue.ts');
  return (await readCatalogue(homeOf(io).snapshots)).snapshots.map(({ name }) => name);
}

/** Selects the entries within `since` milliseconds, with a change at or below `path`. */
function selectEntries(
  entries: readonly HistoryEntry[],
  { since, path }: { since?: number; path?: string },
): HistoryEntry[] {
  const from = since === undefined ? Number.NEGATIVE_INFINITY : Date.now() - since;
  const isNamed = (name: string) => name === path || name.startsWith(`${path}.`);
  return entries.filter(
    ({ at, changes }) =>
      Date.parse(at) >= from && (path === undefined || changes.some((change) => isNamed(change.path))),
  );
}

function noEntries(io: Io, { since, path }: { since?: number; path?: string }): void {
  const filtered = since !== undefined || path !== undefined;
  io.err(filtered ? 'No change matches.\n' : 'Nothing has been changed in this home yet.\n');
}

/** Parses a generation. Throws `ERR_USAGE` unless it is a whole number. */
export function generationIn(word: string): number {
  if (/^\d{1,15}$/.test(word)) return Number(word);
  throw usage(`${JSON.stringify(word)} is not the number of a generation`, 'List them with: rdctl history');
}

/** Returns the entry of a generation. Throws `ERR_NOT_FOUND` without one. */
export function entryAt(entries: readonly HistoryEntry[], generation: number): HistoryEntry {
  const entry = entries.findLast((each) => each.generation === generation);
  if (entry) return entry;
  throw new RdError('ERR_NOT_FOUND', `The history has no generation ${generation}.`, {
    advice: 'List those that it has with: rdctl history',
  });
}

function documentOf(kind: string, members: object) {
  return { kind, formatVersion: 1, ...members };
}
