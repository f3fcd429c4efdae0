import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { sizeText } from '../../src/os/size.ts';
import type { Io } from '../command.ts';
import { passingLine } from './passing-line.ts';

export interface DownloadProgress {
  show(bytes: number, total: number | undefined): void;
  retry(reason: string): void;
  /** Draws nothing after this. */
  end(): void;
}

/** Redraw interval: a remote terminal is slower than the download's chunks. */
const REDRAW_MS = 100;

/** Progress on one terminal line; nothing elsewhere. The last state is always drawn, at the latest with the next redraw. */
export function downloadProgress(io: Pick<Io, 'err' | 'progress'>, clock: Clock = steadyClock): DownloadProgress {
  const line = passingLine(io);
  let drawnAt = Number.NEGATIVE_INFINITY;
  let pending: { text: string; ended: AbortController } | undefined;
  const draw = (text: string) => {
    line.draw(text);
    drawnAt = clock.now();
  };
  const clear = () => {
    pending?.ended.abort();
    pending = undefined;
    line.clear();
  };
  return {
    show(bytes, total) {
      if (!io.progress) return;
      const share = total === undefined || total === 0 ? '' : `, ${Math.floor((bytes / total) * 100)}%`;
      const text = `${sizeText(bytes)}${share}`;
      if (pending) {
        pending.text = text;
        return;
      }
      const wait = drawnAt + REDRAW_MS - clock.now();
      if (wait <= 0) return draw(text);
      const later = { text, ended: new AbortController() };
      pending = later;
      void clock.sleep(wait, later.ended.signal).then(() => {
        if (pending !== later) return;
        pending = undefined;
        draw(later.text);
      });
    },
    retry(reason) {
      clear();
      io.err(`${reason}; trying again.\n`);
    },
    end: clear,
  };
}
