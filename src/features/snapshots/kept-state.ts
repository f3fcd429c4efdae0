import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../errors.ts';
import { defined, type JsonObject } from '../../json.ts';
import type { LogFile } from '../../os/log-file.ts';
import type { MaintenanceWork } from '../../reconcile/maintenance.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import { type Journal, readJournal, type SwapPart } from './journal.ts';
import { clean, confirm, dropUnproven, mergeEarlier, partsOf, type SwapOperations, stage, swap, undo } from './swap.ts';

/** Replaces or deletes the state that the driver keeps, always while the backend is held off. */
export interface KeptState {
  /** Returns the last replacement, until it has been seen running. */
  unproven(): Journal | undefined;
  /**
   * Replaces state and settings. On failure both are unchanged. On success, an earlier unproven replacement is deleted, and the state that it
   * replaced is kept: `revert` goes back to the state that ran last. `source` is the path that a kept path is copied from; undefined if there was
   * nothing.
   */
  replace(input: ReplaceInput, work: MaintenanceWork): Promise<void>;
  /** Deletes all kept state. On failure it is unchanged. */
  wipe(work: MaintenanceWork): Promise<void>;
  /** Deletes the state that the last replacement replaced, because the new one runs. */
  confirm(): Promise<void>;
  /** Goes back to the replaced state, including its settings. */
  revert(work: Pick<MaintenanceWork, 'keepOff'>): Promise<void>;
}

interface ReplaceInput {
  snapshot: string;
  source(live: string): string | undefined;
  /** Verifies the copy beside the live state; throws if it is damaged. */
  check(parts: readonly SwapPart[]): Promise<void>;
  settings: Settings;
}

export interface KeptStateInput {
  kept: readonly string[];
  journalFile: string;
  operations: SwapOperations;
  store: DesiredStore;
  log: LogFile['write'];
  /** Replacement that was found at startup. */
  unproven?: Journal;
}

export function createKeptState(input: KeptStateInput): KeptState {
  const { kept, journalFile, operations, store, log } = input;
  let unproven = input.unproven;

  /** Completes an existing journal, because there can only be one. Returns an unproven replacement. */
  async function completeJournal(): Promise<Journal | undefined> {
    const left = await readJournal(journalFile, kept);
    return left && left.phase !== 'proving' ? undo(left, operations) : left;
  }

  async function rollBack(journal: Journal, work: Pick<MaintenanceWork, 'keepOff'>): Promise<void> {
    try {
      await undo(await restoreSettings(journal), operations);
    } catch (error) {
      const left = await readJournal(journalFile, kept).catch(() => journal);
      log('error', 'the data of the backend could not be put back', { error, phase: left?.phase });
      // If nothing had been moved, or all of it is back, only leftovers remain for the next start.
      if (left && left.phase !== 'copying' && left.phase !== 'undone') {
        work.keepOff(
          `The data of the backend could not be put back: ${sentence(error)} Restart the service to try it again.`,
        );
        throw error;
      }
    }
  }

  /** Records the rollback before anything is undone, so that after a kill the next service continues it. */
  async function restoreSettings(journal: Journal): Promise<Journal> {
    const { settings, phase } = journal;
    if (phase !== 'settings' && phase !== 'proving') return journal;
    const isOurs = (now: Settings) => settings !== undefined && same(now, settings.after);
    const back: Journal = { ...journal, phase: isOurs(store.snapshot().desired.settings) ? 'settings' : 'swapping' };
    await operations.writeJournal(back);
    await writeSettings(({ settings: now }) => (isOurs(now) ? settings?.before : undefined));
    return back;
  }

  /** Removes the replaced state. Leftovers are harmless; the next start or operation tries again. */
  async function removeReplaced(journal: Journal): Promise<void> {
    await clean(journal, operations).catch(logLeftover);
  }

  function logLeftover(error: unknown): void {
    log('warn', 'replaced data could not be removed', { error });
  }

  async function writeSettings(
    next: (now: { settings: Settings }) => JsonObject | undefined,
    snapshot?: string,
  ): Promise<void> {
    const by = { how: 'restore' as const, ...defined({ snapshot }) };
    await store.write(({ desired }) => {
      const settings = next(desired);
      // A journal holds settings that this service had.
      return settings ? { next: { settings: settings as Settings }, answer: undefined, by } : { answer: undefined };
    });
  }

  return {
    unproven: () => unproven,
    async replace({ snapshot, source, check, settings }, work) {
      const earlier = await completeJournal();
      const parts = await partsOf(kept, (live) => source(live) !== undefined, earlier);
      let journal: Journal = { phase: 'copying', snapshot, parts, ...(earlier ? { earlier } : {}) };
      let proving: Journal;
      try {
        await stage(journal, ({ live }) => source(live) ?? '', operations, work.signal);
        await check(parts);
        work.signal.throwIfAborted();
        work.progress('putting the restored state in place');
        journal = { ...journal, phase: 'swapping' };
        await swap(journal, operations);
        journal = {
          ...journal,
          phase: 'settings',
          settings: { before: store.snapshot().desired.settings, after: settings },
        };
        await operations.writeJournal(journal);
        await writeSettings(() => settings, snapshot);
        proving = mergeEarlier({ ...journal, phase: 'proving' });
        await operations.writeJournal(proving);
      } catch (error) {
        await rollBack(journal, work);
        throw error;
      }
      unproven = proving;
      if (earlier) await dropUnproven(parts, operations).catch(logLeftover);
    },
    async wipe(work) {
      const earlier = await completeJournal();
      const parts = await partsOf(kept, () => false, earlier);
      let journal: Journal = { phase: 'copying', parts, ...(earlier ? { earlier } : {}) };
      let wiped: Journal;
      try {
        await stage(journal, () => '', operations, work.signal);
        work.signal.throwIfAborted();
        journal = { ...journal, phase: 'swapping' };
        await swap(journal, operations);
        wiped = await confirm(mergeEarlier(journal), operations);
      } catch (error) {
        await rollBack(journal, work);
        throw error;
      }
      unproven = undefined;
      await removeReplaced(wiped);
    },
    async confirm() {
      const journal = unproven;
      if (!journal) return;
      const confirmed = await confirm(journal, operations);
      unproven = undefined;
      await removeReplaced(confirmed);
    },
    async revert(work) {
      const journal = unproven;
      unproven = undefined;
      if (journal) await rollBack(journal, work);
    },
  };
}

/** Whether the settings are still those of the journal, which have been through JSON. */
export function same(settings: Settings, other: JsonObject): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(settings)), other);
}

function sentence(error: unknown): string {
  const text = messageOf(error);
  return text.endsWith('.') ? text : `${text}.`;
}
