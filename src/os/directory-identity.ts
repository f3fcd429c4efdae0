import { closeSync, constants, openSync, statSync } from 'node:fs';
import { basename, dirname, sep } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';

/** A directory that a process wrote to: its path at that time, and its identity. */
export interface Place {
  path: string;
  /** Device and inode. */
  id: string;
}

/**
 * The relation of a directory to a record in it. `here`: the same directory, maybe under another path. `copied`: the original still exists, and this
 * one has a copy of the record. `moved`: the old path no longer leads to it.
 */
export type PlaceStatus = 'here' | 'copied' | 'moved';

/** Returns the place of a directory, or undefined if it is missing. */
export function placeOf(path: string): Place | undefined {
  const id = idOf(path);
  return id === undefined ? undefined : { path, id };
}

/** Compares a recorded place with the directory that holds the record. `recorded`: absent in records of older versions. */
export function placeStatus(recorded: Place | undefined, directory: string): PlaceStatus {
  if (recorded === undefined || recorded.path === directory) return 'here';
  if (!isSameDirectory(recorded)) return 'moved';
  return idOf(directory) === recorded.id ? 'here' : 'copied';
}

export function parsePlace(value: unknown): Place | undefined {
  if (!isObject(value) || typeof value.path !== 'string' || typeof value.id !== 'string') return undefined;
  return { path: value.path, id: value.id };
}

/** True if the path still leads to the same directory. */
function isSameDirectory({ path, id }: Place): boolean {
  return idOf(path) === id;
}

function idOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** Returns the error for a home that was moved while a service or its leftovers were running. `pid`: that of the service. */
export function homeMovedError(
  recorded: string,
  now: string,
  { pid, alive }: { pid: number; alive: boolean },
): RdError {
  const [from, to] = withoutCommonEnd(recorded, now);
  const origin = alive
    ? `the service (pid ${pid}) that was started with ${from} is still running`
    : `programs of the service (pid ${pid}) of ${from} were not stopped`;
  const gone = alive
    ? ''
    : ` If none of it is running any more, as after a restart of the computer, remove ${now} instead.`;
  return new RdError('ERR_HOME_MOVED', `${to} was moved from ${from}, and ${origin}`, {
    advice: `Move it back (\`mv ${to} ${from}\`), stop everything there with \`rdctl shutdown\`, then move it again. Until then, nothing can be started or changed, because the files would be used twice.${gone}`,
  });
}

/** Drops the common end of two paths: `/a/old/state/lock` and `/a/new/state/lock` become `/a/old` and `/a/new`. */
function withoutCommonEnd(one: string, other: string): [string, string] {
  let [first, second] = [one, other];
  while (first !== dirname(first) && second !== dirname(second) && basename(first) === basename(second)) {
    first = dirname(first);
    second = dirname(second);
  }
  return [first, second];
}

/** Directories in use by this process, each with the anchor directory that identifies it. */
const kept = new Set<{ anchor: Place; roots: readonly string[] }>();

export interface KeptPlace {
  /**
   * Checks that the directory is still in place.
   * @throws RdError `ERR_HOME_MOVED` when it was moved.
   */
  check(): void;
  end(): void;
}

/**
 * Makes `makeDirectory` refuse to create anything below `roots` once `anchor`, which must exist, has been replaced: it would start a second home
 * beside the moved one.
 */
export function keepPlace(anchor: string, roots: readonly string[]): KeptPlace {
  const place = placeOf(anchor);
  if (!place) throw movedAwayError(anchor);
  const entry = { anchor: place, roots };
  kept.add(entry);
  const held = openInode(anchor);
  return {
    check: () => checkKept(entry.anchor),
    end() {
      if (kept.delete(entry) && held !== undefined) closeSync(held);
    },
  };
}

/** An open directory keeps its inode number, even on file systems that assign new ones after eviction. */
function openInode(directory: string): number | undefined {
  return process.platform === 'win32' ? undefined : openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
}

/**
 * Refuses a path in moved directories of this process.
 * @throws RdError `ERR_HOME_MOVED`.
 */
export function refuseMoved(path: string): void {
  for (const { anchor, roots } of kept) {
    if (roots.some((root) => path === root || path.startsWith(root + sep))) checkKept(anchor);
  }
}

function checkKept(anchor: Place): void {
  if (!isSameDirectory(anchor)) throw movedAwayError(anchor.path);
}

function movedAwayError(path: string): RdError {
  return new RdError('ERR_HOME_MOVED', `${path} was moved or removed while the service uses it`, {
    advice:
      'Move the directory back: the service then continues by itself. Until then, it starts, stops and writes nothing. If it was removed, end the service and its programs by hand; their command lines contain the directory.',
  });
}
