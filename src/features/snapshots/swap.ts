import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../../errors.ts';
import { fileOperations } from '../../os/atomic-file.ts';
import { ioError } from '../../os/io-error.ts';
import { isThere } from '../../os/regular-file.ts';
import { type Journal, removeJournal, type SwapPart, writeJournal } from './journal.ts';
import { copyTree, flush } from './tree.ts';

/** The operations with an effect; tests make any of them fail, or end the process there. */
export interface SwapOperations {
  copy(from: string, to: string, signal: AbortSignal): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or a directory tree. Idempotent. */
  remove(path: string): Promise<void>;
  flush(directories: readonly string[]): Promise<void>;
  writeJournal(journal: Journal): Promise<void>;
  removeJournal(): Promise<void>;
}

export function swapOperations(journalFile: string, copy: SwapOperations['copy'] = copyTree): SwapOperations {
  return {
    copy,
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

/** Returns the path of the staged state: beside the live path, so that a swap is a rename within one file system. */
export function stagedPath({ live }: Pick<SwapPart, 'live'>): string {
  return `${live}.restoring`;
}

/**
 * Returns the path of the replaced state. It is kept until the new state is known to run, or, if it never ran itself, until the new one is in place.
 */
function replacedPath(part: Pick<SwapPart, 'live' | 'unproven'>): string {
  return part.unproven ? unprovenPath(part) : `${part.live}.before-restore`;
}

function unprovenPath({ live }: Pick<SwapPart, 'live'>): string {
  return `${live}.unproven`;
}

/** Returns the current parts. `comes` tells whether something will replace them. */
export async function partsOf(
  kept: readonly string[],
  comes: (live: string) => boolean,
  earlier?: Journal,
): Promise<SwapPart[]> {
  const unproven = new Set(earlier?.parts.map(({ live }) => live));
  return Promise.all(
    kept.map(async (live) => ({
      live,
      hadLive: await isThere(live),
      comes: comes(live),
      ...(unproven.has(live) ? { unproven: true as const } : {}),
    })),
  );
}

/** Returns the journal after the swap: a rollback restores the state that ran last, not the one that `earlier` had put there. */
export function mergeEarlier({ earlier, ...journal }: Journal): Journal {
  if (!earlier) return journal;
  const had = new Map(earlier.parts.map((part) => [part.live, part]));
  const parts = journal.parts.map(({ unproven: _, ...part }) => ({
    ...part,
    hadLive: had.get(part.live)?.hadLive ?? part.hadLive,
  }));
  const others = earlier.parts.filter(({ live }) => !parts.some((part) => part.live === live));
  const { settings } = journal;
  return {
    ...journal,
    parts: [...parts, ...others],
    ...(settings ? { settings: { ...settings, before: earlier.settings?.before ?? settings.before } } : {}),
  };
}

/** Copies the new state beside the old. Touches nothing in use. */
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
    await operations.remove(unprovenPath(part));
    // No journal names it, so it is not ours to overwrite.
    if (!part.unproven && (await isThere(replacedPath(part)))) {
      throw new RdError('ERR_IO', `${replacedPath(part)} is in the way`, {
        advice: 'Move it elsewhere and try again.',
      });
    }
  }
  for (const part of coming) await operations.copy(sourceOf(part), stagedPath(part), signal);
  if (coming.length > 0) await operations.flush(coming.map(stagedPath));
}

/** Moves the staged state into place, and keeps the old one beside it. */
export async function swap(journal: Journal, operations: SwapOperations): Promise<void> {
  await operations.writeJournal({ ...journal, phase: 'swapping' });
  for (const part of journal.parts) {
    if (part.hadLive) await operations.rename(part.live, replacedPath(part));
    if (part.comes) await operations.rename(stagedPath(part), part.live);
  }
}

/** Commits: the replaced state is not needed any more, and a rollback is no longer possible. Returns the journal that records this. */
export async function confirm(journal: Journal, operations: SwapOperations): Promise<Journal> {
  const confirmed: Journal = { ...journal, phase: 'confirmed' };
  await operations.writeJournal(confirmed);
  return confirmed;
}

/**
 * Rolls back a swap from any phase, or completes a committed one. Idempotent after any failure.
 * @returns the restored parts that have not been seen running yet.
 */
export async function undo(journal: Journal, operations: SwapOperations): Promise<Journal | undefined> {
  await clean(await rollBack(journal, operations), operations);
  return journal.earlier;
}

/**
 * Rolls back a swap from any phase, or completes a committed one, without removing leftovers: `clean` of the returned journal does that. Each part
 * moves by renames, so it is always either the old or the new one.
 */
export async function rollBack(journal: Journal, operations: SwapOperations): Promise<Journal> {
  const { phase, parts } = journal;
  if (phase === 'copying' || phase === 'confirmed' || phase === 'undone') return journal;
  for (const part of parts) await restorePart(part, operations);
  // The journal has no room on a full disk before they are gone. `clean` reports any that stay.
  for (const part of parts) await operations.remove(stagedPath(part)).catch(() => undefined);
  const undone: Journal = { ...journal, phase: 'undone' };
  await operations.writeJournal(undone);
  return undone;
}

/** Finds leftovers of an incomplete operation beside these paths. */
export async function findLeftovers(kept: readonly string[]): Promise<string[]> {
  const paths = kept.flatMap((live) => [stagedPath({ live }), replacedPath({ live }), unprovenPath({ live })]);
  const there = await Promise.all(paths.map(isThere));
  return paths.filter((_, index) => there[index]);
}

async function restorePart(part: SwapPart, operations: SwapOperations): Promise<void> {
  const [live, staged, replaced] = [part.live, stagedPath(part), replacedPath(part)];
  const isReplaced = part.hadLive ? await isThere(replaced) : await isThere(live);
  if (!isReplaced) return;
  if (await isThere(live)) {
    // The backend may have created this itself meanwhile; staged state still exists only if it was never moved into place.
    await operations.remove(staged);
    await operations.rename(live, staged);
  }
  if (part.hadLive) await operations.rename(replaced, live);
}

/** Removes leftovers of a finished journal, and the journal last. Idempotent. */
export async function clean({ parts, phase, earlier }: Journal, operations: SwapOperations): Promise<void> {
  for (const part of parts) {
    await operations.remove(stagedPath(part));
    // In other phases the state was restored, and a file of this name is not ours.
    if (phase === 'confirmed') await operations.remove(replacedPath(part));
  }
  await dropUnproven(parts, operations);
  if (earlier) await operations.writeJournal(earlier);
  else await operations.removeJournal();
}

/** Removes state that never ran and has been replaced since. */
export async function dropUnproven(parts: readonly SwapPart[], operations: SwapOperations): Promise<void> {
  for (const part of parts) await operations.remove(unprovenPath(part));
}
