import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';
import { fileOperations } from '../storage/atomic-file.ts';
import { ioError } from '../storage/io-error.ts';
import { isThere } from '../storage/presence.ts';
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

/** Beside the live one, so that a rename within one file system is all there is to a swap. */
export function stagedPath({ live }: Pick<SwapPart, 'live'>): string {
  return `${live}.restoring`;
}

/** What was replaced: kept until the new state is known to run, or, where it never ran itself, until the new one is in place. */
function replacedPath(part: Pick<SwapPart, 'live' | 'unproven'>): string {
  return part.unproven ? unprovenPath(part) : `${part.live}.before-restore`;
}

function unprovenPath({ live }: Pick<SwapPart, 'live'>): string {
  return `${live}.unproven`;
}

/** The parts as they are now. `comes`: whether there will be something in their place. */
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

/** The journal once all of it is in place: what it goes back to is what ran last, not what `earlier` had put there. */
export function joined({ earlier, ...journal }: Journal): Journal {
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
    await operations.remove(unprovenPath(part));
    // Nobody's journal knows it: it is not ours to overwrite.
    if (!part.unproven && (await isThere(replacedPath(part)))) {
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

/** Decides that what was replaced is not needed any more; from here on there is no way back. Returns the journal that says so. */
export async function confirm(journal: Journal, operations: SwapOperations): Promise<Journal> {
  const confirmed: Journal = { ...journal, phase: 'confirmed' };
  await operations.writeJournal(confirmed);
  return confirmed;
}

/**
 * Brings back what was there, from whatever a swap has got to, or finishes what was decided. Can be repeated after any failure.
 * @returns what has not yet been seen to run of what is back.
 */
export async function undo(journal: Journal, operations: SwapOperations): Promise<Journal | undefined> {
  await clean(await goBack(journal, operations), operations);
  return journal.earlier;
}

/**
 * As `undo`, without what is left over: that goes with `clean` of the journal that is returned. Each part moves by renames, so it is
 * at every instant the old or the new one.
 */
export async function goBack(journal: Journal, operations: SwapOperations): Promise<Journal> {
  const { phase, parts } = journal;
  if (phase === 'copying' || phase === 'confirmed' || phase === 'undone') return journal;
  for (const part of parts) await putBack(part, operations);
  // On a full disk there is no room for the journal before they are gone. What stays here is told by `clean`.
  for (const part of parts) await operations.remove(stagedPath(part)).catch(() => undefined);
  const undone: Journal = { ...journal, phase: 'undone' };
  await operations.writeJournal(undone);
  return undone;
}

/** What lies beside these places, from an operation that did not end. */
export async function leftBeside(kept: readonly string[]): Promise<string[]> {
  const paths = kept.flatMap((live) => [stagedPath({ live }), replacedPath({ live }), unprovenPath({ live })]);
  const there = await Promise.all(paths.map(isThere));
  return paths.filter((_, index) => there[index]);
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
export async function clean({ parts, phase, earlier }: Journal, operations: SwapOperations): Promise<void> {
  for (const part of parts) {
    await operations.remove(stagedPath(part));
    // Otherwise it is back in its place, and what has this name is not ours.
    if (phase === 'confirmed') await operations.remove(replacedPath(part));
  }
  await dropUnproven(parts, operations);
  if (earlier) await operations.writeJournal(earlier);
  else await operations.removeJournal();
}

/** Removes what never ran and has been replaced since. */
export async function dropUnproven(parts: readonly SwapPart[], operations: SwapOperations): Promise<void> {
  for (const part of parts) await operations.remove(unprovenPath(part));
}
