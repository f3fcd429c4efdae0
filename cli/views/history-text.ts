import type { Author, HistoryEntry, RecordedChange, RecordedLoss, RecordedOutcome } from '../../src/plan/history.ts';
import { type DifferenceText, differenceText, entryLines } from './difference-text.ts';
import { count, durationText, pathText, plainText, tableLines, valueText } from './text.ts';

/** Changes of an entry that the list names; the rest is counted. */
const NAMED = 2;

const CONSENT_BY = { flag: 'on the command line', prompt: 'at the prompt' };

/** Formats one line per entry, newest first. */
export function historyText(entries: readonly HistoryEntry[]): string {
  const rows = entries
    .toReversed()
    .map((entry) => [
      String(entry.generation),
      timeText(entry.at),
      authorText(entry),
      shortOutcome(entry),
      changesBrief(entry),
    ]);
  return `${tableLines([['GENERATION', 'WHEN', 'BY', 'RESULT', 'CHANGES'], ...rows]).join('\n')}\n`;
}

/** Formats all facts of an entry. `stored` has the names of the snapshots that exist. */
export function entryText(entry: HistoryEntry, stored: readonly string[]): string {
  const { generation, at, by, changes, loss, outcome } = entry;
  const files = (by.files ?? []).map(({ path, sha256 }) => [
    'File',
    `${plainText(path)}  sha256:${sha256.slice(0, 12)}`,
  ]);
  const facts = [
    ['Generation', String(generation)],
    ['When', timeText(at)],
    ['By', authorText(entry)],
    ...(by.program === undefined ? [] : [['Program', plainText(by.program)]]),
    ...files,
    ...(by.consent ? [['Consent', `${plainText(by.consent.items.join(', '))} (${CONSENT_BY[by.consent.by]})`]] : []),
    ['Result', outcomeText(outcome)],
  ];
  const steps = (outcome?.phases ?? []).map(({ name, ms, outcome: result }) => [
    `  ${plainText(name)}`,
    ms === undefined ? '' : durationText(ms),
    result === 'failed' ? 'failed' : '',
  ]);
  const parts = [tableLines(facts).join('\n')];
  if (changes.length > 0 || !loss) parts.push(changesText(changes, by.files).trimEnd());
  if (loss) parts.push(['Data loss', ...lossLines(loss, stored).map((line) => `  ${line}`)].join('\n'));
  if (steps.length > 0) parts.push(['Steps', ...tableLines(steps).map((line) => line.trimEnd())].join('\n'));
  return `${parts.join('\n\n')}\n`;
}

function lossLines(loss: RecordedLoss, stored: readonly string[]): string[] {
  return [...loss.items.map(plainText), returnText(loss, stored)];
}

/** Explains how to get lost data back, as a clause. `stored` has the names of the snapshots that exist. */
export function returnText(loss: RecordedLoss, stored: readonly string[]): string {
  if (!('snapshot' in loss)) return `no snapshot was made: ${plainText(loss.uncovered)}`;
  if (!stored.includes(loss.snapshot)) return `its snapshot ${plainText(loss.snapshot)} is deleted`;
  return `to get it back: ${restoreCommand(loss.snapshot)}`;
}

/** Returns the command that brings back lost data. */
export function restoreCommand(snapshot: string): string {
  return `rdctl snapshot restore ${/^[\w.-]+$/.test(snapshot) ? snapshot : JSON.stringify(plainText(snapshot))}`;
}

/**
 * Formats one line per change, with its place in the profile, and one per entry of a changed list. `files` are those of the profile, which are named
 * in full elsewhere.
 */
export function changesText(changes: readonly RecordedChange[], files: Author['files'] = []): string {
  if (changes.length === 0) return 'No differences.\n';
  const names = files.map(({ path }) => basename(path));
  const lines = changes.flatMap((change) => {
    const { source } = change;
    const { entries } = differenceOf(change);
    const line = `  ${changeText(change)}`;
    if (!source) return [line, ...entryLines(entries)];
    const name = basename(source.file);
    const isClear = names.filter((each) => each === name).length === 1;
    return [`${line}  (${plainText(isClear ? name : source.file)}:${source.line})`, ...entryLines(entries)];
  });
  return ['Changes', ...lines].map((line) => `${line}\n`).join('');
}

function basename(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

function changeText(change: RecordedChange): string {
  return `${pathText(change)}: ${differenceOf(change).brief}`;
}

function differenceOf(change: RecordedChange): DifferenceText {
  if ('before' in change || !('after' in change)) return differenceText(change.before, change.after);
  return { brief: valueText(change.after), entries: [] };
}

/** Formats the first changes on one line, and the number of others; or the loss, if nothing else changed. */
export function changesBrief({ by, changes, loss }: Pick<HistoryEntry, 'by' | 'changes' | 'loss'>): string {
  if (changes.length === 0 && loss) return loss.items.map(plainText).join(', ');
  if (changes.length === 0 && by.how === 'restore') return restoredText(by);
  const named = changes.slice(0, NAMED).map(changeText);
  const more = changes.length - named.length;
  return [...named, ...(more > 0 ? [`and ${count(more, 'more change')}`] : [])].join(', ');
}

function restoredText({ snapshot }: Author): string {
  return snapshot === undefined ? 'puts the replaced data back' : `replaces the data by that of ${plainText(snapshot)}`;
}

/** Describes the origin of a change, with the profile and the token: `apply team, token ci-bot`. */
export function authorText({ by }: Pick<HistoryEntry, 'by'>): string {
  if (by.token === undefined) return meansText(by);
  const token = `token ${plainText(by.token)}`;
  return by.how === 'api' ? token : `${meansText(by)}, ${token}`;
}

function meansText(by: HistoryEntry['by']): string {
  if (by.how === 'restore' && by.snapshot !== undefined) return `restore ${plainText(by.snapshot)}`;
  const from = by.profile ?? by.files?.map(({ path }) => basename(path)).join(', ');
  if (by.how === 'rollback' || by.how === 'return') return by.to === undefined ? by.how : `${by.how} to ${by.to}`;
  return from === undefined || from === '' ? by.how : `${by.how} ${plainText(from)}`;
}

function shortOutcome({ outcome }: HistoryEntry): string {
  return outcome?.result ?? 'unfinished';
}

function outcomeText(outcome: RecordedOutcome | undefined): string {
  if (!outcome) return 'unfinished: the backend was still changing when this was last recorded';
  const { result, at, reason, keptBecause } = outcome;
  const why = reason === undefined ? '' : `: ${plainText(reason)}`;
  const kept = keptBecause === undefined ? '' : ` The change was kept, because ${plainText(keptBecause)}.`;
  return `${result} at ${timeText(at)}${why}${kept}`;
}

/** Formats a time in the time zone of this computer: `2026-11-24 12:30:05`. */
export function timeText(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return plainText(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}
