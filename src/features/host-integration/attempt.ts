import { RdError } from '../../errors.ts';
import type { IntegrationOutcome } from './outcome.ts';

/** The result of an operation on a file; `left` says why it was not touched. */
type Result = 'managed' | 'clean' | { left: string };

/** Runs it and turns any result into an outcome. */
export async function outcomeOf(
  what: Pick<IntegrationOutcome, 'part' | 'file'>,
  work: () => Promise<Result>,
): Promise<IntegrationOutcome> {
  try {
    const result = await work();
    return typeof result === 'string' ? { ...what, state: result } : { ...what, state: 'left', message: result.left };
  } catch (error) {
    // Even a bug must not crash the service; the sentence reports the failure.
    const message = error instanceof RdError || error instanceof Error ? error.message : String(error);
    return { ...what, state: 'failed', message };
  }
}
