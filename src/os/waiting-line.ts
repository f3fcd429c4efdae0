import { type Clock, steadyClock } from './clock.ts';
import { statusLine, type Terminal } from './status-line.ts';

/** Maximum length of the line, to fit one row of a terminal. */
const MAX_LENGTH = 100;

/** Milliseconds without output after which a line is printed outside of a terminal. */
export const PRINT_MS = 15_000;

export interface WaitingTerminal extends Terminal {
  columns?: number | undefined;
}

export interface WaitingLineOptions {
  /** Delay before the line is first drawn on a terminal, in milliseconds. */
  afterMs?: number;
  /** Draw on a terminal only. */
  drawsOnly?: boolean;
  /** Colors the text drawn on a terminal. */
  paint?: (text: string) => string;
}

/** Shows what a command waits for: drawn on a terminal, printed line by line elsewhere once it takes long. */
export interface WaitingLine {
  /** Shows a text; `undefined` keeps the current one. */
  show(text: string | undefined): void;
  /** Clears the line; call before writing anything else. Outside of a terminal, the other output counts as a line. */
  interrupt(): void;
  /** Clears the line for good. */
  end(): void;
}

export function waitingLine(
  io: WaitingTerminal,
  { afterMs = 0, drawsOnly = false, paint = (text) => text }: WaitingLineOptions = {},
  clock: Clock = steadyClock,
): WaitingLine {
  const line = statusLine(io);
  const ending = new AbortController();
  let quietUntil = clock.now() + (io.progress ? afterMs : PRINT_MS);
  let latest: string | undefined;
  let printed: string | undefined;
  let isWaiting = false;

  async function write(): Promise<void> {
    if (isWaiting) return;
    isWaiting = true;
    while (!ending.signal.aborted && clock.now() < quietUntil) {
      await clock.sleep(quietUntil - clock.now(), ending.signal);
    }
    isWaiting = false;
    if (latest === undefined || ending.signal.aborted) return;
    if (io.progress) line.draw(paint(latest.slice(0, Math.min(io.columns ?? MAX_LENGTH, MAX_LENGTH))));
    else if (latest !== printed) {
      printed = latest;
      quietUntil = clock.now() + PRINT_MS;
      io.err(`  ${latest}\n`);
    }
  }

  return {
    show(text) {
      if (drawsOnly && !io.progress) return;
      latest = text ?? latest;
      if (latest !== undefined && (io.progress || latest !== printed)) void write();
    },
    interrupt() {
      line.clear();
      latest = undefined;
      if (!io.progress) quietUntil = clock.now() + PRINT_MS;
    },
    end() {
      ending.abort();
      line.clear();
    },
  };
}
