import { messageOf, RdError } from '../../../../errors.ts';
import type { DriverContext } from '../../../driver.ts';
import type { Connection } from '../guest.ts';
import { parseWatchLine, WATCH_SCRIPT, type WatchLine } from './watch.ts';

/** The guest program that reports listening sockets. */
export interface PortWatch {
  /** Starts the program unless it runs. */
  begin(): void;
  /** Stops the program; no reports follow once this returns. */
  end(): Promise<void>;
}

/** Maximum run time; the next observation restarts the program. */
const LIMIT_MS = 24 * 3_600_000;
/** Maximum characters of a report: about ten thousand sockets. */
const MAX_CHARACTERS = 1024 * 1024;

export function portWatch(
  guest: Pick<Connection, 'stream'>,
  onLine: (line: WatchLine) => void,
  log: DriverContext['log'],
): PortWatch {
  let running: { end: AbortController; ended: Promise<void> } | undefined;

  async function follow(signal: AbortSignal): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of guest.stream(['bash', '-c', WATCH_SCRIPT], { signal, timeoutMs: LIMIT_MS })) {
      if (signal.aborted) return;
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_CHARACTERS)
        throw new RdError('ERR_DRIVER_FAILED', 'the list of ports from the guest is too long');
      for (const text of lines) {
        const line = parseWatchLine(text);
        if (line === undefined) log('warn', 'the list of ports from the guest cannot be parsed', {});
        else onLine(line);
      }
    }
  }

  return {
    begin() {
      if (running) return;
      const end = new AbortController();
      const ended = follow(end.signal)
        .catch((error: unknown) => {
          if (end.signal.aborted) return;
          log('debug', 'the ports of the guest are not watched until the next observation', {
            message: messageOf(error),
          });
        })
        .finally(() => {
          running = undefined;
        });
      running = { end, ended };
    },
    async end() {
      running?.end.abort();
      await running?.ended;
    },
  };
}
