import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Io } from '../command.ts';
import type { Style } from './style.ts';
import { durationText } from './value.ts';

/** Shows phases as they begin and end. */
export interface Progress {
  show(status: StatusDocument): void;
  /** Nothing stays on an unfinished line. */
  end(): void;
}

/** On a terminal one line per phase, finished in place; elsewhere a line when a phase ends. All on stderr. */
export function progress(io: Io, paint: Style): Progress {
  const finished = new Set<string>();
  let open = '';

  function close(text: string): void {
    io.err(`${open === '' ? '' : '\r\u001b[2K'}${text}\n`);
    open = '';
  }

  return {
    show(status) {
      for (const phase of status.phases) {
        const id = `${phase.name} ${phase.startedAt}`;
        if (finished.has(id)) continue;
        if (phase.ms !== undefined) {
          finished.add(id);
          const mark = phase.outcome === 'failed' ? paint.bad('failed') : paint.good('done');
          close(`  ${phase.name}: ${mark} (${durationText(phase.ms)})`);
        } else if (io.progress && open !== id) {
          if (open !== '') close('');
          io.err(`  ${phase.name} …`);
          open = id;
        }
      }
    },
    end() {
      if (open !== '') io.err('\r\u001b[2K');
      open = '';
    },
  };
}
