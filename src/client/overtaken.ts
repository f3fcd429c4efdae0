import { RdError } from '../errors.ts';
import type { PlanRequest } from '../plan/change.ts';
import type { HistoryEntry } from '../plan/history.ts';
import { isRuntimeChange } from '../plan/runtime-changes.ts';
import type { LoopStatus } from '../reconcile/contract.ts';
import type { TransactionReport } from '../reconcile/status-document.ts';
import type { PlanClient } from './contract.ts';
import { managerText } from './managers.ts';
import { transactionAt } from './transaction-wait.ts';

/** Whether another write came after this generation. An automatic rollback and the extensions of an apply belong to the write itself. */
export function isOvertaken(
  status: Pick<LoopStatus, 'generation'> & { transaction?: TransactionReport },
  generation: number,
): boolean {
  const { state } = transactionAt(status, generation) ?? {};
  const isOwn = state !== undefined && ['changing', 'proving', 'returning', 'returned', 'failed'].includes(state);
  return status.generation > generation && !isOwn;
}

export interface Asked {
  client: Pick<PlanClient, 'planWithLive' | 'history'>;
  /** The request that was written with `generation`. */
  request: PlanRequest;
  generation: number;
  /** Kind of the plan. */
  how?: 'rollback';
}

/** A setting that is not compared, because extensions and port forwards follow the settings and report their own failures. */
const EXTENSIONS = 'application.extensions.installed';

/**
 * Asks the planner whether later writes left the whole request in force; writes of other fields do.
 * @throws RdError `ERR_SUPERSEDED` naming the write that did not, and its changes.
 */
export async function refuseSuperseded({ client, request, generation, how }: Asked): Promise<void> {
  const { portForwards: _, ...asked } = request;
  const { plan } = await client.planWithLive(asked, how ? { how } : {});
  const missing = plan.changes.filter(
    (change) => change.path !== EXTENSIONS && !change.blocked && !isRuntimeChange(change),
  );
  if (missing.length === 0) return;
  const paths = [...new Set(missing.map(({ path }) => path))];
  const later = ((await client.history?.()) ?? []).filter(
    ({ generation: other, outcome }) => other > generation && outcome?.result !== 'not applied',
  );
  const touches = ({ changes }: HistoryEntry) => changes.some(({ path }) => paths.includes(path));
  const entry = later.findLast(touches) ?? later.at(-1);
  const by =
    entry === undefined
      ? `generation ${plan.generation}`
      : `generation ${entry.generation} (${managerText({ by: entry.by })})`;
  throw new RdError('ERR_SUPERSEDED', `Generation ${generation} was superseded by ${by}, which changed what it set.`, {
    details: [`No longer as asked for: ${paths.join(', ')}`],
    advice: `See \`rdctl history show ${entry?.generation ?? plan.generation}\`, and repeat the command if it should win.`,
  });
}
