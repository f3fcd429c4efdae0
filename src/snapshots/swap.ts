import { lstat, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';
import { fileOperations } from '../storage/atomic-file.ts';
import { ioError, systemCode } from '../storage/io-error.ts';
import { copyTree, flush } from './copy.ts';
import { type Journal, removeJournal, type SwapPart, writeJournal } from './journal.ts';

/** Everything that has an effect, one each; tests make any of them fail, or end the process there. */
export interface SwapOperations {
  copy(from: string, to: string, signal: AbortSignal): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or a whole directory; nothing happens where there is none. */
  remove(path: string): Promise<void>;
  flush(directories: readonly string[]): Promise<void>;
  writeJournal(journal: Journal): Promise<void>;
  removeJournal(): Promise<void>;
}

export function swapOperations(journalFile: string): SwapOperations {
  return {
    copy: copyTree,
    async rename(from, to) {
      try {
        await rename(from, to);
        await fileOperations.syncDirectory(dirname(to));
      } catch (cause) {
        throw ioError(`rename ${from} to`, to, cause);
      }
    },
    async remove(path) {
      await rm(path, { recursive: true, force: true }).catch((cause: unknown) => {
        throw ioError('remove', path, cause);
      });
    },
    flush,
    writeJournal: (journal) => writeJournal(journalFile, journal),
    removeJournal: () => removeJournal(journalFile),
  };
}

/** Beside the live one, so that a rename within one file system is all there is to a swap. */
export function stagedPath({ live }: Pick<SwapPart, 'live'>): string {
  return `${live}.restoring`;
}

/** The state that was replaced, until the new one is known to run. */
function replacedPath({ live }: Pick<SwapPart, 'live'>): string {
  return `${live}.before-restore`;
}

/** The parts as they are now. `comes`: whether there will be something in their place. */
export async function partsOf(kept: readonly string[], comes: (live: string) => boolean): Promise<SwapPart[]> {
  return Promise.all(kept.map(async (live) => ({ live, hadLive: await isThere(live), comes: comes(live) })));
}

/** Copies what comes beside what is there. Nothing that is in use is touched. */
export async function stage(
  journal: Journal,
  sourceOf: (part: SwapPart) => string,
  operations: SwapOperations,
  signal: AbortSignal,
): Promise<void> {
  await operations.writeJournal({ ...journal, phase: 'copying' });
  const coming = journal.parts.filter(({ comes }) => comes);
  for (const part of journal.parts) {
    await operations.remove(stagedPath(part));
    // Nobody's journal knows it: it is not ours to overwrite.
    if (await isThere(replacedPath(part))) {
      throw new RdError('ERR_IO', `${replacedPath(part)} is in the way`, {
        advice: 'Move it elsewhere and try again.',
      });
    }
  }
  for (const part of coming) await operations.copy(sourceOf(part), stagedPath(part), signal);
  if (coming.length > 0) await operations.flush(coming.map(stagedPath));
}

/** Puts what has been staged in its place; what was there stays beside it. */
export async function swap(journal: Journal, operations: SwapOperations): Promise<void> {
  await operations.writeJournal({ ...journal, phase: 'swapping' });
  for (const part of journal.parts) {
    if (part.hadLive) await operations.rename(part.live, replacedPath(part));
    if (part.comes) await operations.rename(stagedPath(part), part.live);
  }
}

/** Decides that what was replaced is not needed any more; from here on there is no way back. */
export async function confirm(journal: Journal, operations: SwapOperations): Promise<void> {
  await operations.writeJournal({ ...journal, phase: 'confirmed' });
}

/**
 * Brings back what was there, from whatever a swap has got to, or finishes what was decided. Can be repeated after any failure. Each
 * part moves by renames, so it is at every instant the old or the new one; what is left over goes last.
 */
export async function undo(journal: Journal, operations: SwapOperations): Promise<void> {
  if (journal.phase !== 'confirmed' && journal.phase !== 'undone') {
    if (journal.phase !== 'copying') for (const part of journal.parts) await putBack(part, operations);
    await operations.writeJournal({ ...journal, phase: 'undone' });
  }
  await clean(journal.parts, operations);
}

async function putBack(part: SwapPart, operations: SwapOperations): Promise<void> {
  const [live, staged, replaced] = [part.live, stagedPath(part), replacedPath(part)];
  const isReplaced = part.hadLive ? await isThere(replaced) : await isThere(live);
  if (!isReplaced) return;
  if (await isThere(live)) {
    // The backend may have made this itself meanwhile; what was staged is only there if it never came into its place.
    await operations.remove(staged);
    await operations.rename(live, staged);
  }
  if (part.hadLive) await operations.rename(replaced, live);
}

/** Removes what is left over after the end of a journal, and the journal last. Can be repeated. */
export async function clean(parts: readonly SwapPart[], operations: SwapOperations): Promise<void> {
  for (const part of parts) {
    await operations.remove(stagedPath(part));
    await operations.remove(replacedPath(part));
  }
  await operations.removeJournal();
}

function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => {
      if (systemCode(error) === 'ENOENT') return false;
      throw ioError('look at', path, error);
    },
  );
}
