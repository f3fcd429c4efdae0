#!/usr/bin/env node
import { writeSync } from 'node:fs';
import { forTerminal } from '../src/settings/printable.ts';
import type { Io } from './command.ts';
import { reportFailure } from './errors.ts';
import { run } from './run.ts';

// The entry, and the only place that touches the process of the tool. Everything here runs before any command: it loads
// what `node -e 0` has loaded too, and the rest on first use.

/** Writes at once, without setting up a stream, which costs more than all else that a short command does. */
function writer(fd: 1 | 2): (data: string | Uint8Array) => void {
  let stream: NodeJS.WriteStream | undefined;
  let gone = false;
  return (data) => {
    // Pipes and files get what there is; a terminal obeys some of it.
    let rest = Buffer.from(isTerminal(fd) ? forTerminal(Buffer.from(data).toString('utf8')) : data);
    while (rest.length > 0 && !gone && !stream) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : undefined;
        if (code === 'EAGAIN') stream = fd === 1 ? process.stdout : process.stderr;
        // The reader has left: the work goes on, and nobody is there to be told.
        else if (code === 'EPIPE' || code === 'EOF' || code === 'EBADF') gone = true;
        // A complaint that cannot be written cannot be complained about.
        else if (fd === 2) gone = true;
        else throw error;
      }
    }
    if (rest.length > 0 && stream) {
      if (stream.listenerCount('error') === 0) stream.on('error', () => undefined);
      stream.write(rest);
      queued = true;
    }
  };
}

/** True once something was left to a stream, which must be let run dry before the end. */
let queued = false;
let controller: AbortController | undefined;

function isTerminal(fd: number): boolean {
  return process.getBuiltinModule('node:tty').isatty(fd);
}

/** The first signal asks the command to end; the second ends it. */
function abortOnSignal(): AbortController {
  const created = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (created.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143);
      created.abort(signal);
    });
  }
  return created;
}

const io: Io = {
  out: writer(1),
  err: writer(2),
  async readStdin(limit) {
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of process.stdin) {
      parts.push(part);
      length += part.length;
      // It may have no end.
      if (length > limit) break;
    }
    return Buffer.concat(parts, Math.min(length, limit + 1));
  },
  get interactive() {
    return isTerminal(0) && isTerminal(2);
  },
  get progress() {
    return isTerminal(2) && process.env.TERM !== 'dumb';
  },
  get columns() {
    return isTerminal(1) ? process.stdout.columns : undefined;
  },
  get colour() {
    const { NO_COLOR, FORCE_COLOR = '0', TERM } = process.env;
    if (NO_COLOR) return false;
    return (FORCE_COLOR !== '' && FORCE_COLOR !== '0') || (TERM !== 'dumb' && isTerminal(1) && isTerminal(2));
  },
  env: process.env,
  cwd: process.cwd(),
  platform: process.platform,
  self: [process.execPath, process.argv[1] ?? ''],
  get signal() {
    controller ??= abortOnSignal();
    return controller.signal;
  },
};

function end(code: number): void {
  process.exitCode = code;
  if (!queued) process.exit(code);
}

process.on('uncaughtException', (error) => {
  end(reportFailure({ error, command: undefined, verbose: process.argv.includes('--verbose') }, io));
});
run(process.argv.slice(2), io).then(end);
