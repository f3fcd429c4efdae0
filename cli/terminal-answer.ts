import type { ReadStream } from 'node:tty';

/** Milliseconds of silence after which a terminal has delivered everything typed before, including pasted lines. */
const QUIET_MS = 100;
const CTRL_C = 3;

/**
 * Asks on the terminal, and reads one line that is typed after the question is shown; earlier input is discarded.
 * @returns undefined at Ctrl-C, Ctrl-D, and when the signal aborts.
 */
export async function askOnTerminal(
  input: ReadStream,
  show: () => void,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (signal.aborted || !(await discardTyped(input, signal))) return undefined;
  show();
  const { createInterface } = await import('node:readline');
  // The terminal itself edits and echoes the line.
  const lines = createInterface({ input, terminal: false });
  const leave = () => lines.close();
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await new Promise((answer) => {
      lines.once('line', answer);
      lines.once('close', () => answer(undefined));
    });
  } finally {
    signal.removeEventListener('abort', leave);
    lines.close();
    input.pause();
  }
}

/** Discards earlier input. Raw mode delivers unfinished lines as well. Returns false at Ctrl-C and when the terminal is gone. */
function discardTyped(input: ReadStream, signal: AbortSignal): Promise<boolean> {
  return new Promise((done) => {
    const end = (goesOn: boolean) => {
      clearTimeout(timer);
      input.off('data', discard).off('end', hangUp).pause();
      signal.removeEventListener('abort', hangUp);
      input.setRawMode(false);
      done(goesOn);
    };
    const hangUp = () => end(false);
    const discard = (typed: Buffer) => {
      timer.refresh();
      if (typed.includes(CTRL_C)) end(false);
    };
    const timer = setTimeout(() => end(true), QUIET_MS);
    input.setRawMode(true);
    signal.addEventListener('abort', hangUp, { once: true });
    input.on('data', discard).on('end', hangUp);
  });
}
