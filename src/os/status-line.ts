/** The part of a terminal that a status line needs: stderr, and whether progress can be drawn there. */
export interface Terminal {
  err(text: string): void;
  progress: boolean;
}

/** A transient line on a terminal; nothing elsewhere. */
export interface StatusLine {
  draw(text: string): void;
  /** Call before writing anything else. */
  clear(): void;
}

const CLEAR_LINE = '\r\u001b[2K';

export function statusLine(io: Terminal): StatusLine {
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
