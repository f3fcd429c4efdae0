import { RdError } from '../errors.ts';
import { isObject, type JsonObject, parseObject } from '../json.ts';
import { type FileOperations, readIfThere, writeFileAtomic } from '../os/atomic-file.ts';
import { ioError } from '../os/io-error.ts';
import { refuseNewer } from '../os/record.ts';
import { openToAppend } from '../os/regular-file.ts';
import { SerialQueue } from '../os/serial-queue.ts';
import type { HistoryEntry, RecordedLoss, RecordedOutcome } from '../plan/history.ts';
import { type FieldManager, managersIn, managersLine, managersOf } from './field-managers.ts';

/**
 * The history of a home: one line of JSON for each write of the desired state, added before the write takes effect, one for its outcome, and one for
 * data whose loss it turned out to cause. Lines are only ever added; a line that a crash cut off is skipped. When there are too many, the file is
 * replaced by one with the newest half, headed by one line with what the others say of who manages which field.
 */

/** Maximum number of entries; beyond that, the older half is dropped. */
export const MOST_ENTRIES = 500;
/** Maximum size, so that one huge setting cannot fill the file. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Lines after which a failed drop is retried, as on a full disk. */
const RETRY_LINES = 50;

export interface HistoryFile {
  /** The highest generation of an entry when the file was opened; 0 without entries. */
  readonly last: number;
  /** The entries when the file was opened, oldest first. */
  readonly initial: readonly HistoryEntry[];
  /** Makes an entry durable. Throws `ERR_IO`; the write that it announces must then not happen. */
  add(entry: Omit<HistoryEntry, 'outcome'>): Promise<void>;
  /** Adds the outcome of a generation. Throws `ERR_IO`. */
  close(generation: number, outcome: RecordedOutcome): Promise<void>;
  /** Adds data that a generation destroys to its entry. Throws `ERR_IO`. */
  lose(generation: number, loss: RecordedLoss): Promise<void>;
  /**
   * Calls back with the generation of the oldest remaining entry, 0 without any: at once, and after each time that entries were dropped. Data bound
   * to an older entry can be removed.
   */
  onOldest(listener: (generation: number) => void): void;
  /** Returns all entries, oldest first, including those being written. Throws `ERR_IO`. */
  entries(): Promise<HistoryEntry[]>;
}

/** Dependencies of the history, replaced by tests. */
export interface HistoryOptions {
  /** Adds text to the file, durably. Throws `ERR_IO`. */
  append?(path: string, text: string): Promise<void>;
  /** File operations that replace the file. */
  operations?: FileOperations;
  /** Called if old entries could not be dropped; this is retried later. */
  onDropFailure?(error: unknown): void;
}

/**
 * Opens the history for adding, and drops the oldest entries. Entries above `current`, the stored generation, never took effect: the
 * service ended between the entry and the write.
 * @throws RdError `ERR_IO`.
 */
export async function openHistory(
  path: string,
  current: number,
  now: () => number,
  { append = appendTo, operations, onDropFailure = () => undefined }: HistoryOptions = {},
): Promise<HistoryFile> {
  const queue = new SerialQueue();
  const listeners = new Set<(generation: number) => void>();
  const text = await textOf(path);
  const entries = entriesIn(text);
  const last = Math.max(0, ...entries.map(({ generation }) => generation));
  /** The file may end in the middle of a line. */
  let torn = text !== '' && !text.endsWith('\n');
  let size = { entries: entries.length, bytes: Buffer.byteLength(text) };
  let oldest = entries[0]?.generation ?? 0;
  /** Lines left until the next attempt. */
  let patience = 0;
  if (isTooLarge(size)) await drop().catch(onDropFailure);

  /** Keeps only the newest entries. Throws `ERR_IO`, leaving all of them in place. */
  async function drop(): Promise<void> {
    const { entries: all, managers, dropped } = parseHistory(await textOf(path));
    const kept = newestOf(all);
    const gone = all.slice(0, all.length - kept.length);
    const last = Math.max(dropped, ...gone.map(({ generation }) => generation));
    const head = `${JSON.stringify({ dropped: last })}\n${managersLine(managersOf(gone, managers))}`;
    const lines = head + linesOf(kept);
    await writeFileAtomic(path, lines, operations ? { operations } : {});
    torn = false;
    size = { entries: kept.length, bytes: Buffer.byteLength(lines) };
    oldest = kept[0]?.generation ?? 0;
    for (const listen of listeners) listen(oldest);
  }

  async function add(record: object): Promise<void> {
    const line = `${torn ? '\n' : ''}${JSON.stringify(record)}\n`;
    torn = true;
    await append(path, line);
    torn = false;
    size.bytes += Buffer.byteLength(line);
    patience -= 1;
    if (!isTooLarge(size) || patience > 0) return;
    patience = RETRY_LINES;
    // Only the next line waits for this.
    queue.run(drop).then(() => {
      patience = 0;
    }, onDropFailure);
  }

  const history: HistoryFile = {
    last,
    initial: entries,
    add: (entry) =>
      queue.run(async () => {
        size.entries += 1;
        if (size.entries === 1) oldest = entry.generation;
        await add({ entry });
      }),
    close: (generation, outcome) => queue.run(() => add({ generation, outcome })),
    lose: (generation, loss) => queue.run(() => add({ generation, loss })),
    onOldest(listener) {
      listeners.add(listener);
      listener(oldest);
    },
    entries: () => queue.run(() => readHistory(path)),
  };
  for (const { generation, outcome } of entries) {
    if (generation <= current || outcome) continue;
    await history.close(generation, { result: 'not applied', at: new Date(now()).toISOString() });
  }
  return history;
}

function isTooLarge({ entries, bytes }: { entries: number; bytes: number }): boolean {
  return entries > MOST_ENTRIES || bytes > MOST_BYTES;
}

/** Returns all entries, oldest first; none without a file. Throws `ERR_IO`. */
export async function readHistory(path: string): Promise<HistoryEntry[]> {
  return entriesIn(await textOf(path));
}

/** Returns the entries, and the manager of each field, even if its entry was dropped. Throws `ERR_IO`. */
export async function readManagedHistory(path: string): Promise<{ entries: HistoryEntry[]; managers: FieldManager[] }> {
  const { entries, managers } = parseHistory(await textOf(path));
  return { entries, managers: managersOf(entries, managers) };
}

/** Returns the entries, and the last generation that was ever dropped, or 0. Throws `ERR_IO`. */
export async function readWholeHistory(path: string): Promise<{ entries: HistoryEntry[]; dropped: number }> {
  const { entries, dropped } = parseHistory(await textOf(path));
  return { entries, dropped };
}

async function textOf(path: string): Promise<string> {
  try {
    const text = (await readIfThere(path)) ?? '';
    refuseNewer(parseObject(text.slice(0, Math.max(0, text.indexOf('\n')))), path);
    return text;
  } catch (cause) {
    throw ioError('read', path, cause);
  }
}

async function appendTo(path: string, text: string): Promise<void> {
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
  return parseHistory(text).entries;
}

/** Parses the entries, the managers of fields before the first of them, and the last generation that was dropped. */
function parseHistory(text: string): { entries: HistoryEntry[]; managers: FieldManager[]; dropped: number } {
  const entries: HistoryEntry[] = [];
  let managers: FieldManager[] = [];
  let dropped = 0;
  for (const line of text.split('\n')) {
    const record = line === '' ? undefined : parseObject(line);
    if (!record) continue;
    if (typeof record.dropped === 'number') dropped = record.dropped;
    else if (record.managers) managers = managersIn(record);
    else if (isEntry(record.entry)) addEntry(entries, record.entry);
    else if (isLoss(record.loss)) {
      const last = entries.findLast(({ generation }) => generation === record.generation);
      if (last) last.loss = record.loss;
    } else if (isOutcome(record.outcome)) {
      const last = entries.findLast(({ generation }) => generation === record.generation);
      // A converged change may still fail while it is being proven.
      const isLater = last?.outcome?.result === 'converged' && record.outcome.result === 'returned';
      if (last && (last.outcome === undefined || isLater)) last.outcome = record.outcome;
    }
  }
  return { entries, managers, dropped };
}

/** Adds an entry. A number is reused only if its first write failed. */
function addEntry(entries: HistoryEntry[], entry: HistoryEntry): void {
  for (const earlier of entries) {
    if (earlier.generation >= entry.generation) earlier.outcome = { result: 'not applied', at: entry.at };
  }
  entries.push(entry);
}

function newestOf(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const kept: HistoryEntry[] = [];
  let bytes = 0;
  for (const entry of entries.slice(-MOST_ENTRIES / 2).toReversed()) {
    bytes += Buffer.byteLength(linesOf([entry]));
    if (bytes > MOST_BYTES / 2 && kept.length > 0) break;
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

function isLoss(value: unknown): value is RecordedLoss & JsonObject {
  if (!isObject(value) || !Array.isArray(value.items)) return false;
  const isKnown = typeof value.snapshot === 'string' || typeof value.uncovered === 'string';
  return isKnown && value.items.every((item) => typeof item === 'string');
}

function isOutcome(value: unknown): value is RecordedOutcome & JsonObject {
  return isObject(value) && typeof value.result === 'string' && typeof value.at === 'string';
}
