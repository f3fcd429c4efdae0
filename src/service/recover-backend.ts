import type { Hold } from '../reconcile/hold.ts';
import { sweep } from '../snapshots/catalogue.ts';
import { type Journal, readJournal } from '../snapshots/journal.ts';
import { quoted } from '../snapshots/name.ts';
import { type SwapOperations, swapOperations, undo } from '../snapshots/swap.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { backendLock } from '../storage/backend-lock.ts';
import type { Places } from '../storage/places.ts';
import { journalFile } from './backend-data.ts';
import { holdOfLock } from './maintenance.ts';

/** What a service has to reckon with that follows on another one. */
export interface Recovered {
  /** Nothing may run: while the lock file is there, or as long as the service lives. */
  found?: { hold: Hold; lasts: 'lock' | 'service' };
  /** What was restored and has not yet been seen to run. */
  unproven?: Journal;
  /** What a person should know. */
  notices: string[];
}

/**
 * Ends what a killed service left half done, before anything is read or started: replaced data comes back, snapshots in the making
 * go, and the lock of a service that lives no more with them. The lock of anybody else is left alone and waited for.
 */
export async function recoverBackend(
  here: Pick<Places, 'backendLock' | 'settingsFile' | 'snapshots' | 'state'>,
  operations: SwapOperations = swapOperations(journalFile(here)),
): Promise<Recovered> {
  const lock = backendLock(here.backendLock);
  const facts = await lock.read();
  try {
    const unfinished = await replay(here, operations);
    if (facts && !facts.abandoned) return { ...unfinished, found: { hold: holdOfLock(facts.action), lasts: 'lock' } };
    await sweep(here.snapshots);
    await lock.remove();
    return unfinished;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const reason = `The data of the backend is not whole, and could not be put back: ${why.replace(/\.$/, '')}. Put that right and restart the service.`;
    return { found: { hold: { keep: 'off', reason }, lasts: 'service' }, notices: [reason] };
  }
}

async function replay(
  here: Pick<Places, 'settingsFile' | 'state'>,
  operations: SwapOperations,
): Promise<{ unproven?: Journal; notices: string[] }> {
  const journal = await readJournal(journalFile(here));
  if (!journal) return { notices: [] };
  if (journal.phase === 'proving') return { unproven: journal, notices: [] };
  if (journal.phase === 'settings' && journal.settings) {
    await writeFileAtomic(here.settingsFile, `${JSON.stringify(journal.settings.before, null, 2)}\n`);
  }
  const unproven = await undo(journal, operations);
  if (journal.phase === 'confirmed') return { notices: [] };
  const what = journal.snapshot === undefined ? 'a reset' : `the restore of the snapshot ${quoted(journal.snapshot)}`;
  return {
    ...(unproven ? { unproven } : {}),
    notices: [`The last service ended during ${what}; everything is as it was before.`],
  };
}
