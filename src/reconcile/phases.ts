import type { Clock } from './clock.ts';
import type { Phase } from './status.ts';

/** Old phases of a long repair are dropped from the front. */
const MOST = 100;

/** Remembers what was done since the last change of the desired state, and how long it took. */
export interface PhaseLog {
  list(): Phase[];
  /** Forgets what is over; what runs stays. */
  restart(): void;
  /** Notes a beginning; the function it returns notes the end. `dropped`: it was called off and never happened. `reason`: why it failed. */
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
