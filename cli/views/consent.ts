import { RdError } from '../../src/errors.ts';
import type { Loss, Plan } from '../../src/plan/change.ts';
import { type Allowed, type Consent, lossesOf, lostItems, missingConsent } from '../../src/plan/losses.ts';
import type { Io } from '../command.ts';

/**
 * Returns the consent to the losses of a plan: from the command line, or else the answer at a prompt. Without a terminal, returns the missing losses.
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

/** Says that a plan stops the backend, as a sentence without its period; undefined if it does not. */
export function stopText({ changes }: Plan): string | undefined {
  const stops = changes.some(
    ({ path, after, severity, blocked }) =>
      path === 'state' && after === 'stopped' && severity !== 'none' && blocked === undefined,
  );
  return stops ? 'This stops the desktop, because it was off before the change that is undone' : undefined;
}

/**
 * Requires consent to a rollback that stops the backend, because the command's name does not say so.
 * @throws RdError `ERR_CONSENT_NEEDED` without it, `ERR_CANCELLED` by Ctrl-C.
 */
export async function consentToStop(plan: Plan, allowed: Allowed, io: Io): Promise<void> {
  const stop = stopText(plan);
  // Whoever agreed to a loss has read the plan.
  if (stop === undefined || allowed === 'all' || lossesOf(plan).length > 0) return;
  if (io.interactive) return askYes(stop, io, 'Type "yes" to continue: ');
  throw new RdError('ERR_CONSENT_NEEDED', `${stop}; nothing was changed.`, {
    advice: 'Review it with `rdctl rollback --plan`, then add --yes. `rdctl rollback GENERATION` undoes other changes.',
  });
}

/**
 * Prompts on the terminal; must only be called when `interactive`. Only the whole word continues: a single key may have been meant for something
 * else.
 * @param loss a sentence without its period.
 * @throws RdError when the user declines (`ERR_CONSENT_NEEDED`) or presses Ctrl-C (`ERR_CANCELLED`).
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
