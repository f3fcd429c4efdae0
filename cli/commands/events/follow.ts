import type { StreamMessage } from '../../../src/client/event-stream.ts';
import { followEvents } from '../../../src/client/session/follow.ts';
import { RdError } from '../../../src/errors.ts';
import type { EventKind } from '../../../src/events/event.ts';
import { COMPATIBLE } from '../../../src/product.ts';
import type { Caller } from '../../command.ts';
import { signalExit } from '../../errors.ts';
import { plainText } from '../../views/text.ts';

/** The error for another application, which has no events. */
export function noEvents(): RdError {
  return new RdError('ERR_WRONG_TARGET', `${COMPATIBLE.productName}, the running application, has no events.`, {
    advice: 'Look at it with `rdctl status`.',
  });
}

export interface Following {
  kinds: readonly EventKind[];
  /** The id to continue after. */
  since?: string | undefined;
  show(message: StreamMessage): void;
}

/**
 * Shows events until a signal, or until nobody reads them, and reports on stderr when the service goes and comes back. Returns the exit code of the
 * signal.
 */
export async function follow(caller: Caller, { kinds, since, show }: Following): Promise<number> {
  const { io } = caller;
  const unread = new AbortController();
  await followEvents({
    caller,
    kinds,
    since,
    signal: unread.signal,
    onMessage(message) {
      show(message);
      if (io.closed) unread.abort();
    },
    onLost: ({ message }) => io.err(`notice: Lost the service (${plainText(message)}); waiting for it to come back.\n`),
    onBack: () => io.err('notice: The service is back.\n'),
  });
  return io.signal.aborted ? signalExit(io) : 0;
}
