import { RdError } from '../../src/errors.ts';
import type { Plan } from '../../src/plan/change.ts';
import { type Allowed, type Consent, type Loss, lossesOf, notAllowed } from '../../src/plan/losses.ts';
import type { Io } from '../command.ts';

/**
 * The consent to the losses in a plan: what was allowed in advance, or else the answer at a prompt. Without a terminal, what is missing.
 * @throws RdError when the user declines (`ERR_CONSENT_NEEDED`) or presses Ctrl-C (`ERR_CANCELLED`).
 */
export async function consentTo(plan: Plan, allowed: Allowed, io: Io): Promise<Consent | { missing: Loss[] }> {
  const items = lossesOf(plan);
  const missing = notAllowed(items, allowed);
  if (missing.length === 0) return { items, by: 'flag' };
  if (!io.interactive) return { missing };
  await askYes(`${plan.summary.text}. Continue and lose this data?`, io);
  return { items, by: 'prompt' };
}

/**
 * Prompts on the terminal; call only when `interactive`.
 * @throws as `askConsent`.
 */
export async function askYes(message: string, io: Io): Promise<void> {
  const { confirm } = await import('@clack/prompts');
  const answer = await confirm({ message, initialValue: false, output: process.stderr, signal: io.signal });
  if (answer === true) return;
  throw new RdError(answer === false ? 'ERR_CONSENT_NEEDED' : 'ERR_CANCELLED', 'Nothing was changed.');
}
