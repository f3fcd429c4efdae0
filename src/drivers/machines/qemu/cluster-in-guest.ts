import type { Clock } from '../../../os/clock.ts';
import type { ClusterDriver } from '../../driver.ts';
import { type GuestState, STOPPED_STANDS_MS } from './engine-in-guest.ts';
import { standing } from './standing.ts';

/**
 * Returns a cluster in a guest. A running one has to be queried, and is never idle; for a stopped one, a `routine` observation may reuse an earlier
 * one.
 */
export function clusterInGuest(
  cluster: ClusterDriver,
  { isUp, isConnected, unlessHalted, onReconnect }: GuestState,
  clock: Pick<Clock, 'now'>,
): ClusterDriver {
  const last = standing(clock, cluster.observe, async ({ state }, signal) => {
    const isStopped = state === 'absent' || state === 'stopped';
    // The cluster itself reports the status in a guest that is off or silent.
    return isStopped && (await isUp()) && (await isConnected(signal)) ? STOPPED_STANDS_MS : 0;
  });
  onReconnect(async () => last.forget());

  return {
    ...cluster,
    observe: last.observe,
    perform: (step, signal, onWait) =>
      last.change(() => unlessHalted(signal, (until) => cluster.perform(step, until, onWait))),
  };
}
