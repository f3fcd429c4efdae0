import type { Client } from '../src/client/client.ts';
import { realPace } from '../src/process/pace.ts';
import type { StatusDocument } from '../src/reconcile/status-document.ts';
import type { Io } from './command.ts';
import { passingLine } from './views/passing-line.ts';
import { plainText } from './views/value.ts';

const LOOK_MS = 400;
const MOST_SIGNS = 100;

export interface ServiceLine {
  /** What the line says; nothing is drawn for `undefined`. */
  text(status: StatusDocument): string | undefined;
  /** Milliseconds before it is drawn for the first time. */
  afterMs?: number;
}

/** One line on the terminal that says what the service does while a command waits for it. Returns what ends it. */
export function serviceLine(client: Client, io: Io, { text, afterMs = 0 }: ServiceLine): () => Promise<void> {
  // Another application has no such status.
  if (!io.progress || client.foreign) return async () => {};
  const ending = new AbortController();
  const line = passingLine(io);
  const showing = (async () => {
    if (afterMs > 0) await realPace.sleep(afterMs, ending.signal);
    while (!ending.signal.aborted) {
      const status = await client.status({ signal: ending.signal }).catch(() => undefined);
      const shown = status && text(status);
      if (shown !== undefined && !ending.signal.aborted) line.draw(plainText(shown).slice(0, MOST_SIGNS));
      await realPace.sleep(LOOK_MS, ending.signal);
    }
  })();
  return async () => {
    ending.abort();
    await showing;
    line.clear();
  };
}
