import type { Io } from '../command.ts';

/** A transient line on a terminal; nothing elsewhere. */
export interface PassingLine {
  draw(text: string): void;
  /** Call before writing anything else. */
  clear(): void;
}

const CLEAR_LINE = '\r\u001b[2K';

export function passingLine(io: Pick<Io, 'err' | 'progress'>): PassingLine {
  let shown = '';
  return {
    draw(text) {
      if (!io.progress || text === shown) return;
      io.err(`${shown === '' ? '' : CLEAR_LINE}${text}`);
      shown = text;
    },
    clear() {
      if (shown !== '') io.err(CLEAR_LINE);
      shown = '';
    },
  };
}
