import { RdError } from '../errors.ts';
import type { IntegrationOutcome } from './outcome.ts';

/** What a piece of work on a file ended in; `left` says why it was not touched. */
type Result = 'managed' | 'clean' | { left: string };

/** Does it, and makes an outcome of whatever happens. */
export async function outcomeOf(
  what: Pick<IntegrationOutcome, 'part' | 'file'>,
  work: () => Promise<Result>,
): Promise<IntegrationOutcome> {
  try {
    const result = await work();
    return typeof result === 'string' ? { ...what, state: result } : { ...what, state: 'left', message: result.left };
  } catch (error) {
    // A bug too must not take the service down with it; the sentence says what is not as wanted.
    const message = error instanceof RdError || error instanceof Error ? error.message : String(error);
    return { ...what, state: 'failed', message };
  }
}
