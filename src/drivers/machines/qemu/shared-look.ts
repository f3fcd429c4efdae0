import { RdError } from '../../../errors.ts';

/**
 * One look for all who ask at the same time. It ends when the first who asked gives up, and the others then look anew: nobody hears that
 * somebody else was cancelled.
 */
export function sharedLook<T>(look: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: Promise<T> | undefined;
  return async function ask(signal): Promise<T> {
    if (current === undefined) {
      current = look(signal).finally(() => {
        current = undefined;
      });
      return current;
    }
    try {
      return await current;
    } catch (error) {
      if (signal.aborted || !(error instanceof RdError) || error.code !== 'ERR_CANCELLED') throw error;
      return ask(signal);
    }
  };
}
