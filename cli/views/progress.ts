import type { Phase } from '../../src/reconcile/status.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Io } from '../command.ts';
import { passingLine } from './passing-line.ts';
import { phasesText, why } from './status-text.ts';
import type { Style } from './style.ts';
import { durationText } from './value.ts';

/** Shows phases as they begin and end, on stderr. */
export interface Progress {
  show(status: StatusDocument): void;
  /** Those that stand on no line yet: a phase is shown once, also where stdout and stderr are one. */
  unshown(phases: readonly Phase[]): Phase[];
  /** Nothing stays on an unfinished line. Called before anything else is written. */
  end(): void;
}

/**
 * On a terminal one line that names the present phase and goes away, and after a failure a table of what was done; elsewhere a
 * line when a phase ends.
 */
export function progress(io: Io, paint: Style): Progress {
  const finished = new Set<string>();
  const idOf = (phase: Phase) => `${phase.name} ${phase.startedAt}`;
  const line = passingLine(io);
  let unfinished: readonly Phase[] = [];

  return {
    show({ phases, converged }) {
      if (io.progress) {
        unfinished = converged ? [] : phases;
        const present = phases.findLast((phase) => phase.ms === undefined);
        if (present) line.draw(paint.dim(`  ${present.name} …`));
        return;
      }
      for (const phase of phases) {
        const id = idOf(phase);
        if (phase.ms === undefined || finished.has(id)) continue;
        finished.add(id);
        io.err(
          `  ${phase.name}: ${phase.outcome === 'failed' ? 'failed' : 'done'} (${durationText(phase.ms)})${why(phase)}\n`,
        );
      }
    },
    unshown: (phases) => phases.filter((phase) => !finished.has(idOf(phase))),
    end() {
      line.clear();
      if (unfinished.length > 0) io.err(`${phasesText(unfinished)}\n`);
      unfinished = [];
    },
  };
}
