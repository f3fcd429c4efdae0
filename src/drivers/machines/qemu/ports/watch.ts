import { RdError } from '../../../../errors.ts';
import type { DriverContext } from '../../../driver.ts';
import type { Connection } from '../guest.ts';
import { parseWatchLine, WATCH_SCRIPT, type WatchLine } from './listening.ts';

/** A program in the guest that tells what listens there. */
export interface PortWatch {
  /** Begins it, unless it runs. */
  begin(): void;
  /** Ends it; nothing is told once this has returned. */
  end(): Promise<void>;
}

/** It is begun again by the next look. */
const LIMIT_MS = 24 * 3_600_000;
/** Some ten thousand sockets. */
const MOST_CHARACTERS = 1024 * 1024;

export function portWatch(
  guest: Pick<Connection, 'stream'>,
  tell: (line: WatchLine) => void,
  log: DriverContext['log'],
): PortWatch {
  let running: { end: AbortController; ended: Promise<void> } | undefined;

  async function follow(signal: AbortSignal): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of guest.stream(['sh', '-c', WATCH_SCRIPT], { signal, timeoutMs: LIMIT_MS })) {
      if (signal.aborted) return;
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MOST_CHARACTERS)
        throw new RdError('ERR_DRIVER_FAILED', 'the guest says too much about its ports');
      for (const each of lines) {
        const line = parseWatchLine(each);
        if (line === undefined) log('warn', 'what the guest says about its ports cannot be understood', {});
        else tell(line);
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
          const message = error instanceof Error ? error.message : String(error);
          log('debug', 'the ports of the guest are not watched until the next look', { message });
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
