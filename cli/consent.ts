import type { Plan } from '../src/plan/change.ts';
import type { Io } from './command.ts';

/** Asks on the terminal whether the losses that a plan names are agreed to. Without a person there the answer is no. */
export async function askConsent(plan: Plan, io: Io): Promise<boolean> {
  if (!io.interactive) return false;
  const { confirm } = await import('@clack/prompts');
  const answer = await confirm({
    message: `${plan.summary.text}. Go on and lose it?`,
    initialValue: false,
    output: process.stderr,
    signal: io.signal,
  });
  return answer === true;
}
