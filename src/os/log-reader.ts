import { watch } from 'node:fs';
import { type FileHandle, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from './clock.ts';
import { ioError, systemCode } from './io-error.ts';
import { type LineSelection, lineSplitter, selectLines } from './log-lines.ts';
import { openToRead } from './regular-file.ts';

const CHUNK = 64 * 1024;
/** Milliseconds between checks of a file whose changes are announced: some file systems, such as network ones, do not announce all. */
const SLOW_POLL_MS = 5_000;
const POLL_MS = 500;

/** Calls back on changes of a file, including spurious ones. Returns the function that ends it, or undefined if changes cannot be announced. */
type WatchFile = (file: string, changed: () => void) => (() => void) | undefined;

export interface FollowOptions {
  signal: AbortSignal;
  clock: Clock;
  watchFile?: WatchFile;
}

/**
 * Reads the selected lines of a log and of its rotated files, given newest first; with `follow`, also every later line, over rotations and
 * truncations, until the signal aborts. Never follows links.
 * @returns undefined if there is no such file.
 * @throws RdError `ERR_IO`.
 */
export async function readLog(
  files: readonly string[],
  selection: LineSelection,
  follow?: FollowOptions,
): Promise<AsyncGenerator<string, void> | undefined> {
  const [newest, ...older] = await openAll(files, follow !== undefined);
  if (!newest) return undefined;
  return linesOf(newest, older, selection, follow);
}

async function* linesOf(
  newest: OpenLog,
  older: readonly OpenLog[],
  selection: LineSelection,
  follow: FollowOptions | undefined,
): AsyncGenerator<string, void> {
  try {
    let { lines, complete } = await selectLines(newest.lines(!follow), selection);
    for (const log of older) {
      if (complete) break;
      const { last } = selection;
      const missing = last === undefined ? {} : { last: last - lines.length };
      const before = await selectLines(log.lines(true), { ...selection, ...missing });
      lines = [...before.lines, ...lines];
      complete = before.complete;
    }
    yield* lines;
    if (follow) yield* newest.later(follow);
  } finally {
    for (const log of [newest, ...older]) await log.close();
  }
}

/**
 * Opens all existing files before anything is read.
 * @param needsNewest open none if the first one is missing.
 */
async function openAll(files: readonly string[], needsNewest: boolean): Promise<OpenLog[]> {
  const logs: OpenLog[] = [];
  const seen = new Set<string>();
  for (const file of files) {
    const handle = await openIfThere(file);
    if (!handle && needsNewest && logs.length === 0) return [];
    if (!handle) continue;
    const { dev, ino } = await handle.stat();
    // A rotation in between shows the same file under two names.
    if (seen.has(`${dev}:${ino}`)) await handle.close();
    else logs.push(openLog(file, handle));
    seen.add(`${dev}:${ino}`);
  }
  return logs;
}

type OpenLog = ReturnType<typeof openLog>;

function openLog(file: string, opened: FileHandle) {
  let handle = opened;
  let position = 0;
  const splitter = lineSplitter();

  /**
   * Yields lines from the current position to the end of the file.
   * @param all includes a last line that has not ended.
   */
  async function* lines(all: boolean): AsyncGenerator<string, void> {
    const buffer = Buffer.alloc(CHUNK);
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK, position).catch((cause: unknown) => {
        throw ioError('read', file, cause);
      });
      if (bytesRead === 0) break;
      position += bytesRead;
      yield* splitter.add(buffer.subarray(0, bytesRead));
    }
    if (all) yield* splitter.rest();
  }

  /** Tells if the path leads to another file now, or this one was emptied. */
  async function change(): Promise<'none' | 'emptied' | 'replaced'> {
    const mine = await handle.stat();
    const there = await stat(file).catch(() => undefined);
    if (there && (there.ino !== mine.ino || there.dev !== mine.dev)) return 'replaced';
    return mine.size < position ? 'emptied' : 'none';
  }

  async function* later({ signal, clock, watchFile = watchName }: FollowOptions): AsyncGenerator<string, void> {
    let stirred = true;
    let wake: (() => void) | undefined;
    const unwatch = watchFile(file, () => {
      stirred = true;
      wake?.();
    });
    try {
      while (!signal.aborted) {
        if (stirred) {
          stirred = false;
          yield* lines(false);
          const what = await change();
          if (what === 'emptied') yield* restart();
          else if (what === 'replaced') yield* reopen();
          continue;
        }
        const sleeping = new AbortController();
        wake = () => sleeping.abort();
        await clock.sleep(unwatch ? SLOW_POLL_MS : POLL_MS, AbortSignal.any([signal, sleeping.signal]));
        stirred = true;
      }
    } finally {
      unwatch?.();
    }

    function* restart(): Generator<string, void> {
      yield* splitter.rest();
      position = 0;
      stirred = true;
    }

    async function* reopen(): AsyncGenerator<string, void> {
      const next = await openIfThere(file);
      if (!next) return;
      // Lines written before the rename, after the last check.
      yield* lines(true);
      await handle.close();
      handle = next;
      yield* restart();
    }
  }

  return { lines, later, close: () => handle.close() };
}

async function openIfThere(file: string): Promise<FileHandle | undefined> {
  return openToRead(file).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw ioError('open', file, cause);
  });
}

/** Watches the directory, because a watch of the file would stay with a rotated one. */
function watchName(file: string, changed: () => void): (() => void) | undefined {
  try {
    const name = basename(file);
    const watcher = watch(dirname(file), (_event, what) => {
      if (what === null || what === name) changed();
    });
    // The watch may end, for example with the directory; periodic checks go on.
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch {
    return undefined;
  }
}
