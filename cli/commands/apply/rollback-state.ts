import { type LastChange, lastChange, lossesAfter, rollbackRequest, sinceReset } from '../../../src/client/history.ts';
import { runningService, type Service } from '../../../src/client/session/find.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { RdError } from '../../../src/errors.ts';
import type { HistoryEntry } from '../../../src/plan/history.ts';
import { PRODUCT } from '../../../src/product.ts';
import { readHistory } from '../../../src/state/history-file.ts';
import type { Caller } from '../../command.ts';
import { authorText, changesBrief, returnText, timeText } from '../../views/history-text.ts';
import type { View } from '../../views/view.ts';
import { entryAt, generationIn, storedNames } from '../history.ts';
import type { RequestedState } from './service.ts';

type Rollback = RequestedState & { asked: ReturnType<typeof rollbackRequest> };

/**
 * Returns the state before every change after a generation; by default, before the last change. The history is that of the running service, or else
 * of this home. Throws `ERR_NOT_FOUND` if it has no such generation, `ERR_WRONG_TARGET` for another application.
 */
export async function rollbackState(word: string | undefined, caller: Caller, view: View): Promise<Rollback> {
  const service = await runningService(caller);
  const { data: home, historyFile } = homeOf(caller.io);
  const entries = sinceReset(await historyOf(service, historyFile));
  const last = word === undefined ? lastChange(entries) : undefined;
  if (last) caller.io.err(`${undoneText(last)}\n`);
  view.warnings((last?.failedBefore ?? []).map(failedText));
  const to = last?.to ?? targetIn(entries, generationIn(word ?? ''));
  const asked = rollbackRequest(entries, to);
  view.warnings(
    asked.secrets.map((path) => `${path} is a secret, which the history does not hold: it stays as it is.`),
  );
  const lost = lossesAfter(entries, to);
  const stored = lost.length > 0 ? await snapshotsOf(service, caller) : [];
  view.warnings(
    lost.map(
      ({ generation, loss }) =>
        `Generation ${generation} ${loss.items.join(', and ')}, which a rollback does not bring back; ${returnText(loss, stored)}.`,
    ),
  );
  return { asked, isRollback: true, home: service?.status.home ?? home, author: async () => ({ to }) };
}

/** Describes the change that is undone, and those that are undone already. */
function undoneText({ change, rolledBack }: LastChange): string {
  const gone = rolledBack.map(({ generation }) => generation);
  const skipped = gone.length === 0 ? '' : ` Generation ${gone.join(', ')} failed and is undone already.`;
  const failed = change.outcome?.result === 'failed' ? ', which failed' : '';
  return `Undoing generation ${change.generation} (${authorText(change)}, ${timeText(change.at)})${failed}: ${changesBrief(change)}.${skipped}`;
}

/** Warns about a failed change that undoing a rollback makes again. */
function failedText(entry: HistoryEntry): string {
  const why = entry.outcome?.reason === undefined ? '' : ` (${entry.outcome.reason.replace(/\.$/, '')})`;
  return `Undoing a rollback makes generation ${entry.generation} again, which failed${why}: ${changesBrief(entry)}.`;
}

async function snapshotsOf(service: Service | undefined, { io }: Caller): Promise<string[]> {
  if (!service) return storedNames(io);
  const { snapshotCalls } = await import('../../../src/client/snapshots.ts');
  return (await snapshotCalls(service.client).list(io.signal)).map(({ name }) => name);
}

async function historyOf(service: Service | undefined, historyFile: string): Promise<HistoryEntry[]> {
  if (!service) return readHistory(historyFile);
  if (service.client.history) return service.client.history();
  throw new RdError(
    'ERR_WRONG_TARGET',
    `Only ${PRODUCT.name} has a history; the running application is ${service.status.product}.`,
    {
      advice: 'Undo its last apply with: rdctl apply --previous --target …',
    },
  );
}

/** Returns the generation if all later changes are known; throws otherwise. */
function targetIn(entries: readonly HistoryEntry[], generation: number): number {
  const [first] = entries;
  // The state before the first recorded change is known, too.
  if (first && generation === first.generation - 1) return generation;
  return entryAt(entries, generation).generation;
}
