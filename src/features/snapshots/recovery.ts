import { RdError } from '../../errors.ts';
import { writeFileAtomic } from '../../os/atomic-file.ts';
import type { Hold } from '../../reconcile/contract.ts';
import { backendLock } from '../../state/backend-lock.ts';
import type { Places } from '../../state/places.ts';
import { sweep } from './catalogue.ts';
import { type Journal, journalFile, readJournal } from './journal.ts';
import { holdOfLock } from './maintenance.ts';
import { quoted } from './name.ts';
import { clean, findLeftovers, rollBack, type SwapOperations, swapOperations } from './swap.ts';
import { copyRecord, endCopy } from './tree.ts';

/** What a service has to reckon with that follows on another one. */
export interface Recovered {
  /** Nothing may run: while the lock file is there, or as long as the service lives. */
  found?: { hold: Hold; lasts: 'lock' | 'service' };
  /** What was restored and has not yet been seen to run. */
  unproven?: Journal;
  /** What a person should know. */
  notices: string[];
}

/** Where the service and its driver have their data. */
interface Whereabouts extends Pick<Places, 'backendLock' | 'settingsFile' | 'snapshots' | 'state'> {
  /** What the driver keeps. */
  kept: readonly string[];
}

/**
 * Ends what a killed service left half done, before settings are read and anything is started: its copy is stopped, replaced data
 * comes back, snapshots in the making go, and the lock of a service that lives no more with them. The lock of anybody else is left
 * alone and waited for. What cannot be removed is only told: it is in nobody's way.
 */
export async function recoverBackend(
  here: Whereabouts,
  operations: SwapOperations = swapOperations(journalFile(here)),
): Promise<Recovered> {
  const lock = backendLock(here.backendLock);
  const facts = await lock.read();
  const notices: string[] = [];
  const leftOver = (error: unknown) =>
    void notices.push(`An operation that did not end left something behind, which is in nobody's way: ${told(error)}`);
  await endCopy(copyRecord(here)).catch(leftOver);
  let unproven: Journal | undefined;
  let undone = false;
  const notice = (text: string) => {
    undone = true;
    notices.push(text);
  };
  try {
    unproven = await replay(here, operations, { leftOver, notice });
  } catch (error) {
    const reason = await damage(error, here);
    return { found: { hold: { keep: 'off', reason, damaged: true }, lasts: 'service' }, notices: [...notices, reason] };
  }
  if (facts?.abandoned && facts.action !== undefined && !undone) notices.push(interrupted(facts.action, unproven));
  const recovered = { ...(unproven ? { unproven } : {}), notices };
  if (facts && !facts.abandoned) return { ...recovered, found: { hold: holdOfLock(facts.action), lasts: 'lock' } };
  for (const failure of await sweep(here.snapshots)) leftOver(failure);
  await lock.remove();
  return recovered;
}

const BACKEND = 'A backend that was stopped for it starts again, if it is to run.';

/** What was cut off without anything being put back. */
function interrupted(action: string, unproven: Journal | undefined): string {
  const state = unproven ? 'what was put in place stays if it runs' : 'what it had begun is removed';
  return `The last service ended in the middle of this: ${action}; ${state}. ${BACKEND}`;
}

interface Report {
  leftOver(error: unknown): void;
  /** Something was put back: a sentence. */
  notice(text: string): void;
}

/** Returns what was restored and has not yet been seen to run. */
async function replay(
  here: Whereabouts,
  operations: SwapOperations,
  { leftOver, notice }: Report,
): Promise<Journal | undefined> {
  const journal = await readJournal(journalFile(here), here.kept);
  if (!journal || journal.phase === 'proving') return journal;
  if (journal.phase === 'settings' && journal.settings) {
    await writeFileAtomic(here.settingsFile, `${JSON.stringify(journal.settings.before, null, 2)}\n`);
  }
  const { snapshot, phase, earlier } = journal;
  await clean(await rollBack(journal, operations), operations).catch(leftOver);
  if (phase !== 'confirmed') {
    const what = snapshot === undefined ? 'a reset' : `the restore of the snapshot ${quoted(snapshot)}`;
    notice(`The last service ended during ${what}; everything is as it was before. ${BACKEND}`);
  }
  return earlier;
}

/** Why the backend has to stay off, and what a person can do about it. */
async function damage(error: unknown, { kept }: Whereabouts): Promise<string> {
  const beside = await findLeftovers(kept).catch(() => []);
  return [
    `The data of the backend may be incomplete, and could not be restored: ${told(error)}`,
    ...(beside.length === 0
      ? [`No data of an interrupted operation was found beside ${kept.join(', ')}.`]
      : [`Look at ${beside.join(', ')}: what ends in .before-restore ran before.`]),
    'Fix this and restart the service.',
  ].join(' ');
}

/** What went wrong and what helps, as sentences. */
function told(error: unknown): string {
  const texts = error instanceof RdError ? [error.message, error.advice ?? ''] : [String(error)];
  return texts
    .filter((text) => text !== '')
    .map((text) => `${text.replace(/\.$/, '')}.`)
    .join(' ');
}
