import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import { CLUSTER_ANSWER_MS, minutesText } from './step-limits.ts';

/** The `what` of the failure of a started cluster that does not answer. */
export const CLUSTER_ANSWER = 'cluster answer';

/** Measures how long a started cluster has not answered. */
export interface ClusterWait {
  /** Called with every observation of such a cluster. Returns an error once it has taken too long. */
  look(): RdError | undefined;
  /** It answered, or its time starts over. */
  forget(): void;
}

export function createClusterWait(clock: Clock): ClusterWait {
  let since: number | undefined;
  return {
    look() {
      since ??= clock.now();
      if (clock.now() - since < CLUSTER_ANSWER_MS) return undefined;
      const text = `the cluster was started and has not answered for ${minutesText(CLUSTER_ANSWER_MS)}; it is left running and watched.`;
      return new RdError('ERR_DRIVER_TERMINAL', text, {
        advice:
          'See in its log what it lacks (often memory or the network), and ask again with `rdctl apply`; or set kubernetes.enabled to false.',
      });
    },
    forget() {
      since = undefined;
    },
  };
}
