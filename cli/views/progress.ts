import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { sizeText } from '../../src/os/size.ts';
import { statusLine } from '../../src/os/status-line.ts';
import type { Phase } from '../../src/reconcile/contract.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Io } from '../command.ts';
import { phasesText, why } from './status-text.ts';
import { durationText, type Style } from './text.ts';

/** Shows phases on stderr as they begin and end. */
export interface Progress {
  show(status: StatusDocument): void;
  /** Phases not printed yet: each is shown once, even when stdout and stderr are the same. */
  unshown(phases: readonly Phase[]): Phase[];
  /** Clears an unfinished line. Call before writing anything else. */
  end(): void;
}

/**
 * On a terminal, one transient line with the current phase, and a table after a failure; elsewhere one line per
 * finished phase.
 */
export function progress(io: Io, paint: Style): Progress {
  const finished = new Set<string>();
  const idOf = (phase: Phase) => `${phase.name} ${phase.startedAt}`;
  const line = statusLine(io);
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

export interface DownloadProgress {
  show(bytes: number, total: number | undefined): void;
  retry(reason: string): void;
  end(): void;
}

/** Redraw interval: a remote terminal is slower than the download's chunks. */
const REDRAW_MS = 100;

/** Progress on one terminal line; nothing elsewhere. */
export function downloadProgress(
  io: Pick<Io, 'err' | 'progress'>,
  clock: Pick<Clock, 'now'> = steadyClock,
): DownloadProgress {
  const line = statusLine(io);
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    show(bytes, total) {
      const complete = bytes === total;
      if (clock.now() - drawnAt < REDRAW_MS && !complete) return;
      drawnAt = clock.now();
      line.draw(`${sizeText(bytes)}${total ? `, ${Math.floor((bytes / total) * 100)}%` : ''}`);
    },
    retry(reason) {
      line.clear();
      io.err(`${reason}; trying again.\n`);
    },
    end: line.clear,
  };
}
