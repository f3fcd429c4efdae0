import type { Clock } from '../os/clock.ts';
import type { Phase } from './status.ts';

/** A long repair drops its oldest phases. */
const MOST = 100;

/** Records the phases since the last change of the desired state, with their durations. */
export interface PhaseLog {
  list(): Phase[];
  /** Drops finished phases and keeps running ones. */
  restart(): void;
  /**
   * Records a start; the returned function records the end. `dropped`: it was cancelled and is removed. `reason`: why
   * it failed.
   */
  begin(name: string): (outcome: 'done' | 'failed' | 'dropped', reason?: string) => void;
}

export function createPhaseLog(clock: Clock): PhaseLog {
  let phases: Phase[] = [];
  return {
    list: () => phases.map((phase) => ({ ...phase })),
    restart() {
      phases = phases.filter((phase) => phase.outcome === undefined);
    },
    begin(name) {
      const started = clock.now();
      const phase: Phase = { name, startedAt: new Date(started).toISOString() };
      phases = [...phases, phase].slice(-MOST);
      return (outcome, reason) => {
        if (outcome === 'dropped') {
          phases = phases.filter((other) => other !== phase);
          return;
        }
        phase.ms = clock.now() - started;
        phase.outcome = outcome;
        if (reason !== undefined) phase.reason = reason;
      };
    },
  };
}
