import { RdError } from '../../src/errors.ts';
import type { Plan } from '../../src/plan/change.ts';
import type { Io } from '../command.ts';

/**
 * Asks on the terminal whether the losses that a plan names are agreed to. Without a person there the answer is no.
 * @throws RdError when the person there says no (`ERR_CONSENT_NEEDED`) or leaves with Ctrl-C (`ERR_CANCELLED`).
 */
export async function askConsent(plan: Plan, io: Io): Promise<boolean> {
  if (!io.interactive) return false;
  await askYes(`${plan.summary.text}. Go on and lose it?`, io);
  return true;
}

/**
 * Asks a person on the terminal; to be called only where there is one.
 * @throws as `askConsent`.
 */
export async function askYes(message: string, io: Io): Promise<void> {
  const { confirm } = await import('@clack/prompts');
  const answer = await confirm({ message, initialValue: false, output: process.stderr, signal: io.signal });
  if (answer === true) return;
  throw new RdError(answer === false ? 'ERR_CONSENT_NEEDED' : 'ERR_CANCELLED', 'Nothing was changed.');
}
