import { isDeepStrictEqual } from 'node:util';
import { RdError } from '../../errors.ts';
import { readRecord } from '../../os/record.ts';
import type { Hold } from '../../reconcile/contract.ts';
import { holdOfLock } from '../../reconcile/maintenance.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import { backendLock } from '../../state/backend-lock.ts';
import type { Places } from '../../state/places.ts';
import { saveSettings } from '../../state/settings-file.ts';
import { sweep } from './catalogue.ts';
import { type Journal, journalFile, readJournal } from './journal.ts';
import { quoted } from './name.ts';
import { recoverSafetySnapshot } from './safety-snapshot-record.ts';
import { clean, findLeftovers, rollBack, type SwapOperations, swapOperations } from './swap.ts';
import { copyRecord, endCopy } from './tree.ts';

/** State left by a previous service. */
export interface Recovered {
  /** The initial hold: nothing may run while the lock file exists, or until the service ends. */
  initialHold?: { hold: Hold; lasts: 'lock' | 'service' };
  /** Restored state that has not been seen running yet. */
  unproven?: Journal;
  /** The restored settings that were in force and have been replaced by the previous ones. */
  undone?: Settings;
  /** Sentences for the user. */
  notices: string[];
}

/** The data directories of the service and its driver. */
interface RecoveryPlaces extends Pick<Places, 'backendLock' | 'settingsFile' | 'snapshots' | 'state' | 'historyFile'> {
  /** The stored generation; absent without a state. */
  generation?: number;
  /** Paths that the driver keeps. */
  kept: readonly string[];
}

/**
 * Cleans up after a killed service, before settings are read and anything is started: stops its copy, puts replaced data back, and removes
 * incomplete snapshots and its lock. Leaves the lock of any other process alone, and waits for it. Leftovers that cannot be removed are only
 * reported, because they are harmless.
 */
export async function recoverBackend(
  places: RecoveryPlaces,
  operations: SwapOperations = swapOperations(journalFile(places)),
): Promise<Recovered> {
  const lock = backendLock(places.backendLock);
  const facts = await lock.read();
  const notices: string[] = [];
  const noteLeftover = (error: unknown): undefined =>
    void notices.push(`An interrupted operation left files behind, which are harmless: ${sentencesOf(error)}`);
  await endCopy(copyRecord(places)).catch(noteLeftover);
  let replayed: Replayed;
  try {
    replayed = await replay(places, operations, noteLeftover);
  } catch (error) {
    const reason = await damageReport(error, places);
    return {
      initialHold: { hold: { keep: 'off', reason, damaged: true }, lasts: 'service' },
      notices: [...notices, reason],
    };
  }
  const { unproven, undone, notice } = replayed;
  if (notice !== undefined) notices.push(notice);
  const safetySnapshot = await recoverSafetySnapshot(places, places.generation ?? Number.POSITIVE_INFINITY).catch(
    noteLeftover,
  );
  if (facts?.abandoned && facts.action !== undefined && notice === undefined) {
    notices.push(interruptionNotice(facts.action, { unproven, safetySnapshot }));
  }
  const recovered = { ...(unproven ? { unproven } : {}), ...(undone ? { undone } : {}), notices };
  if (facts && !facts.abandoned)
    return { ...recovered, initialHold: { hold: holdOfLock(facts.action), lasts: 'lock' } };
  for (const failure of await sweep(places.snapshots)) noteLeftover(failure);
  await lock.remove();
  return recovered;
}

const BACKEND = 'The backend restarts if its desired state is started.';

/** Returns the notice for an interruption that needed no rollback. */
function interruptionNotice(
  action: string,
  { unproven, safetySnapshot }: { unproven: Journal | undefined; safetySnapshot: string | undefined },
): string {
  const state = unproven
    ? 'what was put in place stays if it runs'
    : safetySnapshot === undefined
      ? 'what it had begun is removed'
      : `the snapshot ${quoted(safetySnapshot)} is complete, and the change that it covers is made`;
  return `The last service ended in the middle of this: ${action}; ${state}. ${BACKEND}`;
}

interface Replayed extends Pick<Recovered, 'unproven' | 'undone'> {
  /** A sentence about the state that was put back. */
  notice?: string;
}

/** Completes or rolls back the journal. */
async function replay(
  places: RecoveryPlaces,
  operations: SwapOperations,
  noteLeftover: (error: unknown) => void,
): Promise<Replayed> {
  const journal = await readJournal(journalFile(places), places.kept);
  if (!journal) return {};
  if (journal.phase === 'proving') return { unproven: journal };
  const { snapshot, phase, earlier, settings } = journal;
  let undone: Settings | undefined;
  if (phase === 'settings' && settings) {
    const there = await readRecord(places.settingsFile, { follow: true }).catch(() => undefined);
    const isRestored = isDeepStrictEqual(there, settings.after);
    // A journal holds settings that this service had.
    if (isRestored) undone = settings.after as Settings;
    await saveSettings(places.settingsFile, undefined, settings.before);
  }
  await clean(await rollBack(journal, operations), operations).catch(noteLeftover);
  const replayed = { ...(earlier ? { unproven: earlier } : {}), ...(undone ? { undone } : {}) };
  if (phase === 'confirmed') return replayed;
  const what = snapshot === undefined ? 'a reset' : `the restore of the snapshot ${quoted(snapshot)}`;
  const notice = `The last service ended during ${what}; everything is as it was before. ${BACKEND}`;
  return { ...replayed, notice };
}

/** Reports why the backend has to stay off, with advice for the user. */
async function damageReport(error: unknown, { kept }: RecoveryPlaces): Promise<string> {
  const beside = await findLeftovers(kept).catch(() => []);
  return [
    `The data of the backend may be incomplete, and could not be restored: ${sentencesOf(error)}`,
    ...(beside.length === 0
      ? [`No data of an interrupted operation was found beside ${kept.join(', ')}.`]
      : [`Look at ${beside.join(', ')}: what ends in .before-restore ran before.`]),
    'Fix this and restart the service.',
  ].join(' ');
}

/** Formats an error and its advice as sentences. */
function sentencesOf(error: unknown): string {
  const texts = error instanceof RdError ? [error.message, error.advice ?? ''] : [String(error)];
  return texts
    .filter((text) => text !== '')
    .map((text) => `${text.replace(/\.$/, '')}.`)
    .join(' ');
}
