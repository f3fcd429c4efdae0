import type { PlanClient } from '../../../src/client/contract.ts';
import { runningService } from '../../../src/client/session/find.ts';
import { collected, undoIntegration } from '../../../src/features/host-integration/parts.ts';
import { downloadsIn, factoryReset, type ResetSummary } from '../../../src/state/factory-reset.ts';
import type { Places } from '../../../src/state/places.ts';
import { hostTargets } from '../../arguments/environment.ts';
import type { Caller, Io } from '../../command.ts';
import { userFilesText } from '../../views/plan-text.ts';
import { resetText } from '../../views/reset-text.ts';
import { printInterruptions } from '../../views/service-activity.ts';
import { jsonText, style } from '../../views/text.ts';

const STOP = { settings: {}, state: 'stopped' as const, prune: [], wishes: [] };

/**
 * Shows the data that `reset --k8s` or `--vm` would delete, and the interruptions. `loss` is that of the mode; `snapshot` is undefined if the server
 * has no snapshots.
 */
export async function showLoss(client: PlanClient, loss: string, snapshot: boolean | undefined, io: Io): Promise<void> {
  await printInterruptions(client, STOP, io);
  io.out(`Would delete ${loss}.\n`);
  if (snapshot === undefined) return;
  io.out(
    snapshot
      ? 'A snapshot of it would be made first; without room for one, nothing would be deleted.\n'
      : 'No snapshot of it would be made first.\n',
  );
}

/** Shows the downloads that `reset --cache` would remove. */
export async function showDownloads(here: Places, io: Io): Promise<void> {
  const removed = await downloadsIn(here);
  io.out(resetText({ removed, kept: [], failed: [] }, true));
}

interface FactoryOptions {
  cache: boolean;
  keepsHistory: boolean;
  json: boolean;
}

/** Shows the data that `reset --factory` of this home would remove, and the interruptions. */
export async function showFactoryReset(
  here: Places,
  { cache, keepsHistory, json }: FactoryOptions,
  caller: Caller,
): Promise<void> {
  const { io } = caller;
  const service = await runningService(caller);
  // The pid is 0 for another application, which this does not stop.
  if (service && service.status.pid !== 0) {
    io.err(`notice: stops the service (pid ${service.status.pid})\n`);
    await printInterruptions(service.client, STOP, io);
  }
  showSummary(await factoryReset(here, { cache, keepsHistory, dryRun: true }), json, io);
  const targets = hostTargets(io);
  if (json || 'offBecause' in targets) return;
  const files = await collected((dryRun) => undoIntegration(targets, { dryRun }));
  if (files.length > 0) io.out(`${userFilesText('Your files:', files, style(io.color))}\n`);
}

export function showSummary(summary: ResetSummary, json: boolean, io: Pick<Io, 'out'>): void {
  io.out(json ? jsonText(summary) : resetText(summary, true));
}
