import { setImmediate } from 'node:timers/promises';
import { RdError } from '../errors.ts';
import { SerialQueue } from '../os/serial-queue.ts';

/** Plans of one caller that may wait while another is being computed. */
const MOST_WAITING = 8;

/** Runs a part of a plan once its turn comes. */
type Turn = <T>(part: () => T | Promise<T>) => Promise<T>;

/** Lets each caller have one plan computed at a time. */
export interface PlanTurns {
  /**
   * Carries out `work`. Other plans of the caller wait only for the parts that it passes to `turn`, so a plan that waits for the backend holds up no
   * other.
   * @param caller the name of a token, or undefined for full credentials.
   * @throws RdError `ERR_TOO_MANY` if too many plans of the caller are in progress.
   */
  admit<T>(caller: string | undefined, work: (turn: Turn) => Promise<T>): Promise<T>;
}

/** Creates the queue of plans. A plan is computed in parts, between which the service answers other requests. */
export function createPlanTurns(): PlanTurns {
  const callers = new Map<string | undefined, { queue: SerialQueue; plans: number }>();
  return {
    async admit(caller, work) {
      const own = callers.get(caller) ?? { queue: new SerialQueue(), plans: 0 };
      if (own.plans > MOST_WAITING) {
        throw new RdError('ERR_TOO_MANY', `${own.plans} plans of this caller are in progress already`, {
          advice: 'Wait for their replies, then send this one again.',
        });
      }
      callers.set(caller, own);
      own.plans += 1;
      try {
        return await work((part) =>
          own.queue.run(async () => {
            await setImmediate();
            return part();
          }),
        );
      } finally {
        own.plans -= 1;
        if (own.plans === 0) callers.delete(caller);
      }
    },
  };
}
