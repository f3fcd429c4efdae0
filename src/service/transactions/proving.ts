import type { Clock } from '../../os/clock.ts';
import type { LoopStatus } from '../../reconcile/contract.ts';

/** Milliseconds that a backend must run as desired until its state counts as proven; a simulation is faster. */
const PROVING_MS = 3_000;

/** Watches whether the backend keeps running as desired. */
export interface Proving {
  /** Called with every status of the loop. */
  look(status: LoopStatus): void;
  close(): void;
}

/** Creates a watch that calls `proven` once for each version of the desired state that ran for `ms` without a break. */
export function createProving(clock: Clock, proven: (generation: number) => void, ms = PROVING_MS): Proving {
  let watched: { generation: number; ended: AbortController } | undefined;

  function stop(): void {
    watched?.ended.abort();
    watched = undefined;
  }

  async function watch(generation: number): Promise<void> {
    const ended = new AbortController();
    watched = { generation, ended };
    await clock.sleep(ms, ended.signal);
    if (!ended.signal.aborted) proven(generation);
  }

  return {
    look(status) {
      const { generation } = status;
      const runs = isRunning(status);
      if (runs && watched?.generation === generation) return;
      stop();
      if (runs) void watch(generation);
    },
    close: stop,
  };
}

/** Whether the backend runs as desired. */
export function isRunning({ converged, power, generation, observedGeneration }: LoopStatus): boolean {
  return converged && power === 'started' && observedGeneration === generation;
}
