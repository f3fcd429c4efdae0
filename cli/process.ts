import { fstatSync, writeSync } from 'node:fs';
import type { Platform } from '../src/settings/field.ts';
import { forTerminal } from '../src/settings/printable.ts';
import type { Io } from './command.ts';
import { reportFailure } from './errors.ts';
import { run } from './run.ts';
import { asTyped } from './views/as-typed.ts';
import { fold } from './views/fold.ts';

// The only file that touches the process. Everything imported here runs before any command, so it is limited to modules
// that `node -e 0` loads too; the rest is loaded on first use.

interface Writer {
  /** Writes a document, or part of a file. */
  write(data: string | Uint8Array): void;
  /** Writes text for people. */
  say(text: string): void;
  /** Whether nobody reads the output. */
  readonly gone: boolean;
}

/** Writes synchronously: setting up a stream costs more than the rest of a short command. */
function writer(fd: 1 | 2, called: string): Writer {
  let stream: NodeJS.WriteStream | undefined;
  let gone = false;

  // Pipes and files get the bytes as they are; a terminal would interpret some of them.
  function write(data: string | Uint8Array): void {
    send(isTerminal(fd) ? forTerminal(Buffer.from(data).toString('utf8')) : data);
  }

  // Text for people may reach a terminal through another program, such as a pager, so it is always escaped.
  function say(said: string): void {
    const text = forTerminal(called === PROGRAM ? said : asTyped(said, called));
    send(isTerminal(fd) ? foldForTerminal(text, fd) : text);
  }

  function send(data: string | Uint8Array): void {
    let rest = Buffer.from(data);
    while (rest.length > 0 && !gone && !stream) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : undefined;
        if (code === 'EAGAIN') stream = fd === 1 ? process.stdout : process.stderr;
        // The reader has closed the pipe; the work continues without output.
        else if (code === 'EPIPE' || code === 'EOF' || code === 'EBADF') gone = true;
        // A failure to write to stderr cannot be reported.
        else if (fd === 2) gone = true;
        else throw error;
      }
    }
    if (rest.length > 0 && stream) {
      if (stream.listenerCount('error') === 0) {
        stream.on('error', () => {
          gone = true;
        });
      }
      stream.write(rest);
      queued = true;
    }
  }

  return {
    write,
    say,
    get gone() {
      return gone;
    },
  };
}

/** True once output was handed to a stream, which must drain before exit. */
let queued = false;
let controller: AbortController | undefined;

/** `/dev/null` of Linux (devices.txt: 1, 3). */
const NULL_DEVICE = 0x103;

/** Whether a descriptor is a terminal. `tty` is asked only about a device that can be one, because it loads the network. */
function isTerminal(fd: number): boolean {
  try {
    const facts = fstatSync(fd);
    if (!facts.isCharacterDevice() || (process.platform === 'linux' && facts.rdev === NULL_DEVICE)) return false;
  } catch {
    return false;
  }
  return process.getBuiltinModule('node:tty').isatty(fd);
}

/** Folds text to the terminal. The width is determined only if a line may not fit, because that sets up the stream. */
function foldForTerminal(text: string, fd: 1 | 2): string {
  if (!/.{41}/.test(text)) return text;
  const { columns } = fd === 1 ? process.stdout : process.stderr;
  // A terminal without a size, such as that of a recording program, has 0 columns.
  return columns ? fold(text, columns) : text;
}

/** Creates a controller that the first signal aborts; the second signal ends the process. */
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

/**
 * Runs the command line in this process, and ends it with the exit code.
 * @param self program and first arguments that restart this tool.
 */
export function runProcess(self: readonly string[], argv: readonly string[]): void {
  const { platform } = process;
  if (platform !== 'darwin' && platform !== 'linux' && platform !== 'win32') {
    writeSync(2, `Error: rdctl runs on Linux, macOS and Windows, not on ${platform}.\n`);
    process.exit(1);
  }
  const io = processIo(self, platform);
  const fail = (error: unknown) => {
    end(reportFailure({ error, command: undefined, verbose: argv.includes('--verbose') }, io));
  };
  process.on('uncaughtException', fail);
  // Node passes these to the handler for exceptions; other runtimes end the process instead.
  process.on('unhandledRejection', fail);
  run(argv, io).then(end);
}

const PROGRAM = 'rdctl';

/** Returns the name by which this tool is called. The script of a clone sets it, for this process only. */
function calledAs(): string {
  const { RDCTL_COMMAND } = process.env;
  delete process.env.RDCTL_COMMAND;
  return RDCTL_COMMAND || PROGRAM;
}

function processIo(self: readonly string[], platform: Platform): Io {
  const called = calledAs();
  const stdout = writer(1, called);
  const stderr = writer(2, called);
  return {
    out: stdout.write,
    say: stdout.say,
    err: stderr.say,
    get closed() {
      return stdout.gone;
    },
    async readStdin(limit) {
      const parts: Buffer[] = [];
      let length = 0;
      for await (const part of process.stdin) {
        parts.push(part);
        length += part.length;
        // The input may be endless.
        if (length > limit) break;
      }
      return Buffer.concat(parts, Math.min(length, limit + 1));
    },
    get interactive() {
      return isTerminal(0) && isTerminal(2);
    },
    async ask(question) {
      const { askOnTerminal } = await import('./terminal-answer.ts');
      return askOnTerminal(process.stdin, () => stderr.say(question), this.signal);
    },
    get progress() {
      return isTerminal(2) && process.env.TERM !== 'dumb';
    },
    get columns() {
      return isTerminal(1) ? process.stdout.columns : undefined;
    },
    get color() {
      const { NO_COLOR, FORCE_COLOR = '0', TERM } = process.env;
      if (NO_COLOR) return false;
      return (FORCE_COLOR !== '' && FORCE_COLOR !== '0') || (TERM !== 'dumb' && isTerminal(1) && isTerminal(2));
    },
    env: process.env,
    cwd: process.cwd(),
    platform,
    self,
    get signal() {
      controller ??= abortOnSignal();
      return controller.signal;
    },
  };
}

function end(code: number): void {
  process.exitCode = code;
  if (!queued) process.exit(code);
}
