import { RdError } from '../../../errors.ts';

/**
 * Shares one observation among concurrent callers. If the caller that started it is canceled, the others start a new one, so a cancellation
 * never propagates to another caller.
 */
export function shareObservation<T>(observe: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: Promise<T> | undefined;
  return async function shared(signal): Promise<T> {
    if (current === undefined) {
      current = observe(signal).finally(() => {
        current = undefined;
      });
      return current;
    }
    try {
      return await current;
    } catch (error) {
      if (signal.aborted || !(error instanceof RdError) || error.code !== 'ERR_CANCELLED') throw error;
      return shared(signal);
    }
  };
}
