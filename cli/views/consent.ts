import { RdError } from '../../src/errors.ts';
import type { Plan } from '../../src/plan/change.ts';
import type { Io } from '../command.ts';

/**
 * Prompts for consent to the losses in a plan. Without a terminal the answer is no.
 * @throws RdError when the user declines (`ERR_CONSENT_NEEDED`) or presses Ctrl-C (`ERR_CANCELLED`).
 */
export async function askConsent(plan: Plan, io: Io): Promise<boolean> {
  if (!io.interactive) return false;
  await askYes(`${plan.summary.text}. Continue and lose this data?`, io);
  return true;
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
