import { type ErrorCode, RdError } from '../../errors.ts';
import type { EventKind } from '../../events/event.ts';
import { type Clock, steadyClock } from '../../os/clock.ts';
import { createClient } from '../client.ts';
import type { StreamMessage } from '../event-stream.ts';
import type { Caller } from './home.ts';

export interface FollowInput {
  caller: Caller;
  kinds: readonly EventKind[];
  /** The id to continue after. */
  since?: string | undefined;
  onMessage(message: StreamMessage): void;
  /** Called when the stream has ended: the service is restarting, has exited, or hangs. */
  onLost(error: RdError): void;
  /** Called when a stream continues. */
  onBack(): void;
  /** Ends the following, like the signal of the caller. */
  signal?: AbortSignal;
  clock?: Clock;
}

/** First and longest pause between attempts to reach an absent service, in milliseconds. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 1_000;

/** Errors of a service that is away, or just starting. */
const AWAY: readonly ErrorCode[] = ['ERR_NOT_RUNNING', 'ERR_CONNECTION', 'ERR_NOT_READY', 'ERR_DEADLINE'];

/**
 * Follows the events of a service until the signal aborts, across its restarts. An absent service is looked for at growing intervals, because nothing
 * tells when it comes back.
 * @throws RdError for every failure that waiting does not change.
 */
export async function followEvents(input: FollowInput): Promise<void> {
  const { caller, kinds, clock = steadyClock } = input;
  const signal = input.signal ? AbortSignal.any([caller.io.signal, input.signal]) : caller.io.signal;
  let since = input.since;
  let away = false;
  let pause = FIRST_PAUSE;
  const here = () => {
    if (away) input.onBack();
    away = false;
    pause = FIRST_PAUSE;
  };
  while (!signal.aborted) {
    const lost = await readOnce().catch((error: unknown) => error);
    if (signal.aborted) return;
    if (!(lost instanceof RdError) || !(AWAY.includes(lost.code) || (away && isStale(lost)))) throw lost;
    if (!away) input.onLost(lost);
    away = true;
    await clock.sleep(pause, signal);
    pause = Math.min(pause * 1.5, LONGEST_PAUSE);
  }

  async function readOnce(): Promise<RdError> {
    const { events } = createClient(await caller.connect());
    await events?.({
      ...{ kinds, since, signal, clock },
      onPosition(id) {
        since = id;
        here();
      },
      onMessage(message) {
        here();
        input.onMessage(message);
      },
    });
    return new RdError('ERR_CONNECTION', 'the service has stopped');
  }
}

/** Whether the connection file may be stale: between two runs, it may still have the password of the first one. */
function isStale({ code }: RdError): boolean {
  return code === 'ERR_UNAUTHORIZED';
}
