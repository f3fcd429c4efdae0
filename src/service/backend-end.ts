import type { DesiredStore } from '../api/desired-store.ts';
import { BACKEND_STOP_MS } from '../client/stop-limits.ts';
import { systemClock } from '../reconcile/clock.ts';
import type { Controllers } from '../reconcile/contract.ts';
import type { LogFile } from '../storage/log-file.ts';

/** Stops what runs, for a bounded time. The wish for it to run stays on the disk, for the next start. True when it has stopped. */
export async function stopBackend(
  controllers: Controllers,
  store: DesiredStore,
  log: LogFile,
  limitMs = BACKEND_STOP_MS,
): Promise<boolean> {
  await store.idle();
  const { desired } = store.snapshot();
  controllers.desire({ ...desired, power: 'stopped', generation: desired.generation + 1 });
  const { backendState } = await controllers.quiesce(AbortSignal.timeout(limitMs));
  const hasStopped = backendState === 'STOPPED';
  if (!hasStopped) log.write('error', 'the backend did not stop', { backendState });
  const closed = new AbortController();
  await Promise.race([controllers.close(), systemClock.sleep(limitMs, closed.signal)]);
  closed.abort();
  return hasStopped;
}
