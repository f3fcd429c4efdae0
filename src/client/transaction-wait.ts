import { RdError } from '../errors.ts';
import type { KeptStatus, TransactionReport } from '../reconcile/status-document.ts';

/** Returns the transaction of a write from a status; undefined for another write, and if a service has none. */
export function transactionAt(
  { transaction }: { transaction?: TransactionReport },
  generation: number | undefined,
): TransactionReport | undefined {
  return transaction?.generation === generation ? transaction : undefined;
}

/** True while the service still decides whether to undo a change, or undoes it. */
export function isUndecided(transaction: TransactionReport | undefined): boolean {
  return transaction !== undefined && ['changing', 'proving', 'returning'].includes(transaction.state);
}

/**
 * Returns the error of a change that the service has undone; undefined for any other. `now` is the reason why the backend fails now, as a sentence.
 * `hadSteps` means that port forwards or extensions were to follow. `kept` has the profiles that are kept now.
 */
export function undoneError(
  transaction: TransactionReport | undefined,
  { now, hadSteps, kept }: { now: string; hadSteps: boolean; kept: readonly Pick<KeptStatus, 'name' | 'generation'>[] },
): RdError | undefined {
  if (transaction?.state !== 'returned' && transaction?.state !== 'failed') return undefined;
  const { generation, to, returnGeneration, reason = '' } = transaction;
  // Profiles that were applied after this change, with nothing after them, came back with the rollback.
  const again = kept.filter((profile) => profile.generation > generation).map(({ name }) => name);
  const show = `rdctl history show ${generation}`;
  const details = [
    `Generation ${generation} is undone by generation ${returnGeneration}: settings, machine options and power are those of generation ${to}.`,
    ...(hadSteps ? ['The port forwards and extensions of this apply were not changed.'] : []),
    ...again.map((name) => `The kept profile ${name} is again what it was before.`),
    'Data is as the change left it. A container that was interrupted runs again only if its restart policy says so.',
  ];
  if (transaction.state === 'failed') {
    return new RdError(
      'ERR_CONVERGE_FAILED',
      `The change failed: ${reason} It was undone, and the backend failed again: ${now}`,
      {
        details,
        advice: `Fix the cause, then run \`rdctl start\`; \`${show}\` has the steps.`,
      },
    );
  }
  return new RdError('ERR_CONVERGE_FAILED', `The change failed and was undone: ${reason}`, {
    details,
    advice: `Fix the profile and apply it again; \`${show}\` has the steps, and --on-failure keep leaves a failed change in place.`,
  });
}
