import { RdError } from '../../src/errors.ts';
import type { Loss, Plan } from '../../src/plan/change.ts';
import { type Allowed, type Consent, lossesOf, lostItems, missingConsent } from '../../src/plan/losses.ts';
import type { Io } from '../command.ts';

/**
 * The consent to the losses in a plan: what was allowed in advance, or else the answer at a prompt. Without a terminal, what is missing.
 * @throws RdError when the user declines (`ERR_CONSENT_NEEDED`) or presses Ctrl-C (`ERR_CANCELLED`).
 */
export async function consentTo(plan: Plan, allowed: Allowed, io: Io): Promise<Consent | { missing: Loss[] }> {
  const items = lossesOf(plan);
  const missing = missingConsent(items, allowed);
  if (missing.length === 0) return { items, by: 'flag' };
  if (!io.interactive) return { missing };
  const lost = lostItems(plan).map(({ what }) => what);
  await askYes(lost.length > 0 ? `This ${lost.join(', and ')}` : plan.summary.text, io);
  return { items, by: 'prompt' };
}

/** That a plan stops what runs, as a sentence without its period. */
export function stopText({ changes }: Plan): string | undefined {
  const stops = changes.some(
    ({ path, after, severity, blocked }) =>
      path === 'state' && after === 'stopped' && severity !== 'none' && blocked === undefined,
  );
  return stops ? 'This stops the desktop, because it was off before the change that is undone' : undefined;
}

/**
 * The consent to a rollback that stops what runs, which its name does not say.
 * @throws RdError `ERR_CONSENT_NEEDED` without it, `ERR_CANCELLED` by Ctrl-C.
 */
export async function consentToStop(plan: Plan, allowed: Allowed, io: Io): Promise<void> {
  const stop = stopText(plan);
  // Who agreed to a loss has read the plan.
  if (stop === undefined || allowed === 'all' || lossesOf(plan).length > 0) return;
  if (io.interactive) return askYes(stop, io, 'Type "yes" to continue: ');
  throw new RdError('ERR_CONSENT_NEEDED', `${stop}; nothing was changed.`, {
    advice: 'Review it with `rdctl rollback --plan`, then add --yes. `rdctl rollback GENERATION` undoes other changes.',
  });
}

/**
 * Prompts on the terminal; call only when `interactive`. The one answer that continues is the word itself: a single key may have been meant
 * for something else.
 * @param loss a sentence without its period
 * @throws as `consentTo`.
 */
export async function askYes(
  loss: string,
  io: Io,
  question = 'Type "yes" to continue and lose this data: ',
): Promise<void> {
  const answer = (await io.ask(`${loss}.\n${question}`))?.trim();
  if (answer === 'yes') return;
  if (answer === undefined) throw new RdError('ERR_CANCELLED', 'Nothing was changed.');
  const isPlain = ['', 'n', 'no'].includes(answer.toLowerCase());
  throw new RdError('ERR_CONSENT_NEEDED', `${isPlain ? '' : 'The answer was not "yes". '}Nothing was changed.`);
}
