import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { sizeText } from '../../src/os/size.ts';
import { statusLine } from '../../src/os/status-line.ts';
import { PRINT_MS, waitingLine } from '../../src/os/waiting-line.ts';
import type { Phase } from '../../src/reconcile/contract.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Io } from '../command.ts';
import { phasesText, why } from './status-text.ts';
import { durationText, type Style } from './text.ts';
import { workText } from './work-text.ts';

/** Shows phases on stderr as they begin and end. */
export interface Progress {
  show(status: StatusDocument): void;
  /** Returns phases that were not printed yet: each is shown once, even when stdout and stderr are the same. */
  unshown(phases: readonly Phase[]): Phase[];
  /** Clears an unfinished line; must be called before writing anything else. */
  interrupt(): void;
  /** Clears an unfinished line for good. */
  end(): void;
}

/**
 * Shows progress: on a terminal, one transient line with the current work, and a table after a failure; elsewhere one line per finished phase, and
 * one with the current work when that takes long.
 */
export function progress(io: Io, paint: Style, clock: Clock = steadyClock): Progress {
  const finished = new Set<string>();
  const idOf = (phase: Phase) => `${phase.name} ${phase.startedAt}`;
  const line = waitingLine(io, { paint: paint.dim }, clock);
  let unfinished: readonly Phase[] = [];

  return {
    show(status) {
      const { phases, converged } = status;
      const work = workText(status);
      if (io.progress) {
        unfinished = converged ? [] : phases;
        line.show(work && `  ${work}`);
        return;
      }
      for (const phase of phases) {
        const id = idOf(phase);
        if (phase.ms === undefined || finished.has(id)) continue;
        finished.add(id);
        line.interrupt();
        io.err(
          `  ${phase.name}: ${phase.outcome === 'failed' ? 'failed' : 'done'} (${durationText(phase.ms)})${why(phase)}\n`,
        );
      }
      line.show(work);
    },
    unshown: (phases) => phases.filter((phase) => !finished.has(idOf(phase))),
    interrupt: line.interrupt,
    end() {
      line.end();
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

/** Milliseconds between redraws: a remote terminal is slower than the download's chunks. */
const REDRAW_MS = 100;

/** Shows the progress of a download on one terminal line; elsewhere one line at intervals. */
export function downloadProgress(
  io: Pick<Io, 'err' | 'progress'>,
  clock: Pick<Clock, 'now'> = steadyClock,
): DownloadProgress {
  const line = statusLine(io);
  let shownAt = io.progress ? Number.NEGATIVE_INFINITY : clock.now();
  return {
    show(bytes, total) {
      const complete = bytes === total && io.progress;
      if (clock.now() - shownAt < (io.progress ? REDRAW_MS : PRINT_MS) && !complete) return;
      shownAt = clock.now();
      const text = `${sizeText(bytes)}${total ? `, ${Math.floor((bytes / total) * 100)}%` : ''}`;
      if (io.progress) line.draw(text);
      else io.err(`  Downloading: ${text}\n`);
    },
    retry(reason) {
      line.clear();
      io.err(`${reason}; trying again.\n`);
    },
    end: line.clear,
  };
}
