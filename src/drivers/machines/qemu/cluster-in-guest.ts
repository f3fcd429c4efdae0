import type { Clock } from '../../../os/clock.ts';
import type { ClusterDriver } from '../../driver.ts';
import { type GuestState, STOPPED_STANDS_MS } from './engine-in-guest.ts';
import { standing } from './standing.ts';

/** A cluster in a guest. One that runs has to be asked, and is never idle; of one that is stopped, a `routine` observation may be an earlier one. */
export function clusterInGuest(
  cluster: ClusterDriver,
  { isUp, isConnected, unlessHalted, onReconnect }: GuestState,
  clock: Pick<Clock, 'now'>,
): ClusterDriver {
  const last = standing(clock, cluster.observe, async ({ state }, signal) => {
    const isStopped = state === 'absent' || state === 'stopped';
    // It says by itself what is known of one in a guest that is off or silent.
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
