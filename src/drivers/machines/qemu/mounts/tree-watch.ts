import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isWithin } from './directories.ts';

/** Maximum number of directories: each takes an inotify watch of the user. */
const MOST_DIRECTORIES = 8_192;
/** Directories that are large and never edited by hand. */
const SKIPPED: ReadonlySet<string> = new Set(['node_modules', '.git']);

export interface TreeWatchOptions {
  /** Absolute, without links. */
  root: string;
  /** Directories in it that are left out, with everything in them. */
  hidden: readonly string[];
  /** Called when a file at this path may have been created, changed or deleted. */
  changed(path: string): void;
  /** Called if some directories are not watched, with the reason as a clause. */
  failed(why: string): void;
  most?: number;
}

/** Watches of a directory and those in it, without following links. */
export interface TreeWatch {
  /** Watches a directory that has appeared, and the directories in it. */
  add(directory: string): Promise<void>;
  /** Forgets a directory that is gone. */
  remove(directory: string): void;
  close(): void;
}

/** Starts to watch a tree. Does not keep the process running. */
export function watchTree(options: TreeWatchOptions): TreeWatch {
  const { root, hidden, changed, failed, most = MOST_DIRECTORIES } = options;
  const watchers = new Map<string, FSWatcher>();
  let isClosed = false;

  async function add(directory: string): Promise<void> {
    if (isClosed || watchers.has(directory)) return;
    if (directory !== root && SKIPPED.has(basename(directory))) return;
    if (!isWithin(directory, root) || hidden.some((place) => isWithin(directory, place))) return;
    if (watchers.size >= most) return failed(`${root} has more than ${most} directories`);
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) =>
        changed(name === null ? directory : join(directory, name)),
      );
      watcher.on('error', () => remove(directory));
      watchers.set(directory, watcher);
    } catch (error) {
      // A directory that is gone again is no failure.
      if (error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EMFILE')) {
        failed('this computer has no inotify watches left (sysctl fs.inotify.max_user_watches)');
      }
      return;
    }
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) if (entry.isDirectory()) await add(join(directory, entry.name));
  }

  function remove(directory: string): void {
    for (const [path, watcher] of watchers) {
      if (!isWithin(path, directory)) continue;
      watcher.close();
      watchers.delete(path);
    }
  }

  return {
    add,
    remove,
    close() {
      isClosed = true;
      remove(root);
    },
  };
}
