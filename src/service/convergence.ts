import type { LoopStatus } from '../reconcile/contract.ts';

/** What led away from convergence: the start of the service, a write of the desired state, or what others did to the backend. */
type ConvergenceCause = 'start' | 'change' | 'drift';

export type ConvergenceEvent =
  /** The backend had converged, has been changed from outside, and is being repaired. */
  { kind: 'drift' } | { kind: 'ended'; cause: ConvergenceCause; result: 'converged' | 'failed'; ms: number };

/** Reads the loop's reports in order. `now`: milliseconds of a clock that only grows. */
export type ConvergenceWatch = (status: LoopStatus, now: number) => ConvergenceEvent[];

/** @param begun when the service started. */
export function watchConvergence(generation: number, begun: number): ConvergenceWatch {
  let current = generation;
  let underway: { cause: ConvergenceCause; since: number } | undefined = { cause: 'start', since: begun };
  /** This generation has converged, and nothing has been found different since. */
  let calm = false;
  /** Since when an observation is due: only a step tells that something has changed. */
  let doubtful: number | undefined;
  /** Another operation, such as a snapshot, stops and starts the backend. */
  let held = false;

  function end(result: 'converged' | 'failed', now: number): ConvergenceEvent[] {
    if (!underway) return [];
    const { cause, since } = underway;
    underway = undefined;
    return [{ kind: 'ended', cause, result, ms: now - since }];
  }

  return (status, now) => {
    if (status.generation !== current) {
      current = status.generation;
      underway = { cause: 'change', since: now };
      calm = false;
      held = false;
    }
    if (isHeld(status)) held = true;
    if (status.converged) {
      calm = true;
      held = false;
      doubtful = undefined;
      return end('converged', now);
    }
    if (underway) return status.backendState === 'ERROR' ? end('failed', now) : [];
    if (held || !calm) return [];
    doubtful ??= now;
    if (!status.phases.some(({ outcome }) => outcome === undefined)) return [];
    underway = { cause: 'drift', since: doubtful };
    calm = false;
    doubtful = undefined;
    return [{ kind: 'drift' }];
  };
}

function isHeld({ conditions }: LoopStatus): boolean {
  return conditions.some(
    ({ type, reason }) => type === 'Converged' && ['Held', 'DataNotWhole', 'ServiceStopping'].includes(reason),
  );
}
