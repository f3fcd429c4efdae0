import { RdError } from '../errors.ts';
import { isObject, type JsonObject, parseObject } from '../json.ts';
import { readIfThere, writeFileAtomic } from '../os/atomic-file.ts';
import { ioError } from '../os/io-error.ts';
import { openToAppend } from '../os/regular-file.ts';
import { SerialQueue } from '../os/serial-queue.ts';
import type { HistoryEntry, RecordedOutcome } from '../plan/history.ts';

/**
 * The history of a home: one line of JSON for each write of the desired state, added before the write takes effect, and one for what became
 * of it. Lines are only ever added; a line that a crash cut off is skipped.
 */

/** Entries that are kept; older ones go when a service starts. */
export const MOST_ENTRIES = 500;
/** So that one huge setting cannot fill the file. */
const MOST_BYTES = 4 * 1024 * 1024;

export interface HistoryFile {
  /** The highest generation of an entry; 0 without one. */
  readonly last: number;
  /** Makes an entry durable. Throws `ERR_IO`; the write that it announces must then not happen. */
  add(entry: Omit<HistoryEntry, 'outcome'>): Promise<void>;
  /** Adds what became of a generation. Throws `ERR_IO`. */
  close(generation: number, outcome: RecordedOutcome): Promise<void>;
}

/**
 * Opens the history for adding, and drops the oldest entries. Entries above `current`, the stored generation, never took effect: the
 * service ended between the entry and the write.
 * @throws RdError `ERR_IO`.
 */
export async function openHistory(path: string, current: number, now: () => number): Promise<HistoryFile> {
  const queue = new SerialQueue();
  const text = await textOf(path);
  const entries = entriesIn(text);
  /** The file ends in the middle of a line. */
  let torn = text !== '' && !text.endsWith('\n');
  if (entries.length > MOST_ENTRIES || text.length > MOST_BYTES) {
    await writeFileAtomic(path, linesOf(newest(entries)));
    torn = false;
  }

  async function add(record: object): Promise<void> {
    const line = `${torn ? '\n' : ''}${JSON.stringify(record)}\n`;
    torn = true;
    await append(path, line);
    torn = false;
  }

  const history: HistoryFile = {
    last: Math.max(0, ...entries.map(({ generation }) => generation)),
    add: (entry) => queue.run(() => add({ entry })),
    close: (generation, outcome) => queue.run(() => add({ generation, outcome })),
  };
  for (const { generation, outcome } of entries) {
    if (generation <= current || outcome) continue;
    await history.close(generation, { result: 'not applied', at: new Date(now()).toISOString() });
  }
  return history;
}

/** All entries, oldest first; none without a file. Throws `ERR_IO`. */
export async function readHistory(path: string): Promise<HistoryEntry[]> {
  return entriesIn(await textOf(path));
}

async function textOf(path: string): Promise<string> {
  try {
    return (await readIfThere(path)) ?? '';
  } catch (cause) {
    throw ioError('read', path, cause);
  }
}

async function append(path: string, text: string): Promise<void> {
  try {
    const handle = await openToAppend(path);
    try {
      await handle.appendFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw cause instanceof RdError ? cause : ioError('write', path, cause);
  }
}

function entriesIn(text: string): HistoryEntry[] {
  const entries: HistoryEntry[] = [];
  for (const line of text.split('\n')) {
    const record = line === '' ? undefined : parseObject(line);
    if (!record) continue;
    if (isEntry(record.entry)) addEntry(entries, record.entry);
    else if (isOutcome(record.outcome)) {
      const last = entries.findLast(({ generation }) => generation === record.generation);
      if (last && last.outcome === undefined) last.outcome = record.outcome;
    }
  }
  return entries;
}

/** A number is given again only where its first write failed. */
function addEntry(entries: HistoryEntry[], entry: HistoryEntry): void {
  for (const earlier of entries) {
    if (earlier.generation >= entry.generation) earlier.outcome = { result: 'not applied', at: entry.at };
  }
  entries.push(entry);
}

function newest(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const kept: HistoryEntry[] = [];
  let bytes = 0;
  for (const entry of entries.slice(-MOST_ENTRIES / 2).toReversed()) {
    bytes += JSON.stringify(entry).length;
    if (bytes > MOST_BYTES / 2) break;
    kept.unshift(entry);
  }
  return kept;
}

function linesOf(entries: readonly HistoryEntry[]): string {
  return entries
    .flatMap(({ outcome, ...entry }) => [
      JSON.stringify({ entry }),
      ...(outcome ? [JSON.stringify({ generation: entry.generation, outcome })] : []),
    ])
    .map((line) => `${line}\n`)
    .join('');
}

function isEntry(value: unknown): value is HistoryEntry & JsonObject {
  if (!isObject(value) || !isObject(value.by) || !Array.isArray(value.changes)) return false;
  const hasChanges = value.changes.every((change) => isObject(change) && typeof change.path === 'string');
  return hasChanges && typeof value.generation === 'number' && typeof value.at === 'string';
}

function isOutcome(value: unknown): value is RecordedOutcome & JsonObject {
  return isObject(value) && typeof value.result === 'string' && typeof value.at === 'string';
}
