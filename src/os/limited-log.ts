import type { Clock } from './clock.ts';
import type { LogFile } from './log-file.ts';

/** Writes a line: a constant message, with variable values. */
export type Log = LogFile['write'];

/** Lines of one kind that are written without a limit. */
const AT_ONCE = 5;
/** First and longest interval, in milliseconds, after which further lines are counted. It doubles while there are any. */
const WINDOW = { first: 60_000, longest: 3_600_000 };

type Line = [level: Parameters<Log>[0], message: string, values: Readonly<Record<string, unknown>>];

/** A log for lines that callers can cause without limit. */
export interface LimitedLog {
  /** @param kind lines of the same kind share a limit, so callers must not be able to choose it freely. */
  write(kind: string, ...line: Line): void;
  /** Writes the counts that are due. Later lines are still limited, but no longer counted. */
  close(): void;
}

interface Flood {
  written: number;
  /** Lines since the last count, and the latest of them. */
  more: number;
  latest?: Line;
  /** One per flood, because a signal warns of more than ten listeners. */
  closing: AbortController;
}

/**
 * Keeps the first lines of a flood and, after a minute and then ever less often, the latest one with the number of those left out. So a flood of any
 * length neither fills the log nor pushes out earlier lines.
 */
export function limitedLog(log: Log, clock: Pick<Clock, 'sleep'>): LimitedLog {
  const floods = new Map<string, Flood>();
  function count(flood: Flood): void {
    if (flood.latest) {
      const [level, message, values] = flood.latest;
      log(level, `${message} … more`, { ...values, more: flood.more });
    }
    flood.more = 0;
    delete flood.latest;
  }

  /** Writes the counts of a flood until nothing was left out in a window. */
  async function follow(kind: string, flood: Flood): Promise<void> {
    const { signal } = flood.closing;
    for (let window = WINDOW.first; ; window = Math.min(2 * window, WINDOW.longest)) {
      await clock.sleep(window, signal);
      if (signal.aborted) return;
      if (!flood.latest) break;
      count(flood);
    }
    floods.delete(kind);
  }

  function begin(kind: string): Flood {
    const flood: Flood = { written: 0, more: 0, closing: new AbortController() };
    floods.set(kind, flood);
    void follow(kind, flood);
    return flood;
  }

  return {
    write(kind, ...line) {
      const flood = floods.get(kind) ?? begin(kind);
      if (flood.written < AT_ONCE) {
        flood.written += 1;
        log(...line);
      } else {
        flood.more += 1;
        flood.latest = line;
      }
    },
    close() {
      for (const flood of floods.values()) {
        flood.closing.abort();
        count(flood);
      }
    },
  };
}
