import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { Socket } from 'node:net';
import { Duplex, type Readable } from 'node:stream';
import { messageOf, RdError } from '../errors.ts';
import { defined } from '../json.ts';
import { installAdvice } from './program.ts';

export interface RunOptions {
  /** A wrapper with arguments that executes the program. Errors name the program. */
  within?: readonly string[];
  signal?: AbortSignal;
  /** Timeout in milliseconds; 30,000 by default. */
  timeoutMs?: number;
  /** Standard input; empty by default. */
  input?: string | Uint8Array;
  /** A host file of any size as standard input. */
  inputFile?: string;
  /** A stream as standard input; when it fails, the program is stopped, and its error is thrown. */
  inputStream?: Readable;
  /** The complete environment; by default that of this process. */
  env?: Readonly<Record<string, string | undefined>>;
  cwd?: string;
  /** Bytes accepted on each output stream; 1 MiB by default. More is an error. */
  maxOutput?: number;
  /** Text in a line on standard error after which the program does nothing more, but does not end: it is stopped. */
  fatal?: string;
  /** Exit statuses that are not failures; `[0]` by default. */
  accept?: readonly number[];
}

export interface RunResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

const MEBIBYTE = 1024 * 1024;
const KILL_AFTER_MS = 2_000;

/**
 * Runs a program to completion, without a shell.
 * @throws RdError `ERR_DRIVER_FAILED` naming the program and its exit status, with the last lines of its standard error as
 *   details; `ERR_DRIVER_TERMINAL` with an install hint when it is missing; `ERR_CANCELLED` when the signal aborts.
 */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const [program = '', ...args] = argv;
  const { signal, timeoutMs = 30_000, accept = [0], maxOutput = MEBIBYTE, fatal } = options;
  if (signal?.aborted) throw cancelledError(program);

  const [first = program, ...words] = [...(options.within ?? []), program, ...args];
  const child = startProgram(first, words, options);
  let ended: RdError | undefined;
  let killer: NodeJS.Timeout | undefined;
  const end = (reason: RdError) => {
    if (ended) return;
    ended = reason;
    if (hasExited(child)) return closeStreams(child);
    child.kill('SIGTERM');
    killer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
  };

  for (const output of [child.stdout, child.stderr]) {
    output.on('error', (cause: unknown) => end(unreadable(`the output of ${program}`, cause)));
  }
  const stdout = collect(child.stdout, maxOutput, () => end(tooMuch(program, maxOutput)));
  const stderr = collect(child.stderr, maxOutput, () => end(tooMuch(program, maxOutput)));
  if (fatal !== undefined) {
    child.stderr.on('data', () => {
      const line = lastLines(stderr(), Number.POSITIVE_INFINITY).find((each) => each.includes(fatal));
      if (line === undefined) return;
      end(new RdError('ERR_DRIVER_FAILED', `${program} was stopped: ${line}`, { details: [line] }));
    });
  }
  const timer = setTimeout(() => end(timeoutError(program, timeoutMs)), timeoutMs);
  const onAbort = () => end(cancelledError(program));
  signal?.addEventListener('abort', onAbort, { once: true });
  // A program may exit without reading its input; its exit status decides.
  child.stdin.on('error', () => undefined);
  const source = options.inputFile === undefined ? options.inputStream : createReadStream(options.inputFile);
  source?.on('error', (cause: unknown) => end(unreadable(options.inputFile ?? 'the input', cause)));
  if (source) source.pipe(child.stdin);
  else child.stdin.end(options.input);

  try {
    const { code, by } = await exitOf(child, () => ended !== undefined);
    if (ended) throw ended;
    const result = { exitCode: code ?? -1, stdout: stdout(), stderr: stderr() };
    if (code === null || !accept.includes(code)) throw exitError(program, code, by, result.stderr);
    return result;
  } catch (error) {
    if (error instanceof RdError) throw error;
    throw startError(first, error);
  } finally {
    clearTimeout(timer);
    clearTimeout(killer);
    signal?.removeEventListener('abort', onAbort);
    source?.destroy();
  }
}

/** Starts a program. Most reasons that it cannot be started are reported later, but some, such as another processor's file, are thrown at once. */
function startProgram(
  program: string,
  args: readonly string[],
  { cwd, env }: RunOptions,
): ChildProcessWithoutNullStreams {
  try {
    return spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...defined({ cwd }),
      ...(env === undefined ? {} : { env: { ...env } }),
    });
  } catch (error) {
    throw startError(program, error);
  }
}

function unreadable(what: string, cause: unknown): RdError {
  return cause instanceof RdError ? cause : new RdError('ERR_IO', `${what} cannot be read`, { cause });
}

type Child = ReturnType<typeof spawn>;

function exitOf(child: Child, wasEnded: () => boolean): Promise<{ code: number | null; by: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.once('exit', () => {
      if (wasEnded()) closeStreams(child);
    });
    child.once('close', (code, by) => resolve({ code, by }));
  });
}

function hasExited({ exitCode, signalCode }: Child): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Closes our ends of the streams. Another program may hold the other ends open forever, and nobody reads the rest after a failure. */
function closeStreams(child: Child): void {
  for (const stream of child.stdio) stream?.destroy();
}

function collect(stream: NodeJS.ReadableStream, limit: number, overflow: () => void): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > limit) overflow();
    else chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Returns the last non-empty lines, for the details of an error. */
export function lastLines(text: string, count = 8): string[] {
  const lines = text.split('\n').map((line) => line.trimEnd());
  return lines.filter((line) => line !== '').slice(-count);
}

export function exitError(program: string, code: number | null, by: NodeJS.Signals | null, stderr: string): RdError {
  const how = code === null ? `was ended by ${by ?? 'a signal'}` : `failed with exit status ${code}`;
  const details = lastLines(stderr);
  const last = details.at(-1);
  return new RdError('ERR_DRIVER_FAILED', `${program} ${how}${last ? `: ${last}` : ''}`, { details });
}

function startError(program: string, cause: unknown): RdError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOENT') {
    return new RdError('ERR_DRIVER_TERMINAL', `${program} was not found`, { cause, advice: installAdvice(program) });
  }
  const text = messageOf(cause);
  return new RdError('ERR_DRIVER_FAILED', `${program} could not be run: ${text}`, { cause });
}

function timeoutError(program: string, timeoutMs: number): RdError {
  return new RdError('ERR_DRIVER_FAILED', `${program} did not finish within ${timeoutMs / 1000} s and was stopped`);
}

function tooMuch(program: string, limit: number): RdError {
  return new RdError('ERR_DRIVER_FAILED', `${program} printed more than ${limit} bytes and was stopped`);
}

function cancelledError(program: string): RdError {
  return new RdError('ERR_CANCELLED', `${program} was stopped because the operation was canceled`);
}

const GRACE_MS = 2_000;
const KEPT_ERROR_BYTES = 64 * 1024;

export interface StreamOptions extends Pick<RunOptions, 'env' | 'signal' | 'timeoutMs'> {
  /** Stop timeout when the caller stops reading; 2,000 by default, 0 for a program with nothing to shut down. */
  graceMs?: number;
  /** Standard input stays open, and empty, as long as the output is read; otherwise it ends at once. */
  holdsInput?: true;
}

/**
 * Runs a program, without a shell, and streams its standard output. The program is stopped when the caller stops reading.
 * @throws the errors of `run`; when the program fails, after all its output.
 */
export async function* stream(argv: readonly string[], options: StreamOptions = {}): AsyncGenerator<Uint8Array, void> {
  const [program = '', ...args] = argv;
  const { signal, timeoutMs = 30_000, graceMs = GRACE_MS, holdsInput, env } = options;
  if (signal?.aborted) throw cancelledError(program);
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(env === undefined ? {} : { env: { ...env } }),
  });
  // A program may exit without reading its input.
  child.stdin.on('error', () => undefined);
  if (!holdsInput) child.stdin.end();
  const exit = new Promise<{ code: number | null; by: NodeJS.Signals | null; error?: unknown }>((resolve) => {
    child.on('error', (error) => resolve({ code: null, by: null, error }));
    child.once('close', (code, by) => resolve({ code, by }));
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-KEPT_ERROR_BYTES);
  });
  let killer: NodeJS.Timeout | undefined;
  let late = false;
  const end = (why?: RdError) => {
    child.kill(graceMs === 0 ? 'SIGKILL' : 'SIGTERM');
    killer ??= setTimeout(() => child.kill('SIGKILL'), graceMs);
    // Another program may hold the other ends, as an ssh control master does for its clients.
    child.stdout.destroy(why);
    child.stderr.destroy();
    child.stdin.destroy();
  };
  const giveUp = () => end(cancelledError(program));
  const timer = setTimeout(() => {
    late = true;
    end(timeoutError(program, timeoutMs));
  }, timeoutMs);
  signal?.addEventListener('abort', giveUp, { once: true });
  let complete = false;
  try {
    for await (const chunk of child.stdout) yield chunk;
    const { code, by, error } = await exit;
    complete = true;
    if (signal?.aborted) throw cancelledError(program);
    if (late) throw timeoutError(program, timeoutMs);
    if (error !== undefined) throw startError(program, error);
    if (code !== 0) throw exitError(program, code, by, stderr);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
    if (!complete) {
      end();
      await exit;
    }
    clearTimeout(killer);
  }
}

/**
 * Starts a program, without a shell, for a conversation: writes go to its standard input, and its standard output is read. Destroying the stream
 * kills it; it does not keep this process alive. The stream is destroyed, without an error, when the program ends or cannot be started.
 */
export function converse(argv: readonly string[], env: Readonly<Record<string, string>>): Duplex {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], env: { ...env } });
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
  // The stream passes on the errors of its ends only while it is open, and a late one without a listener would end this process.
  for (const end of [child.stdin, child.stdout]) end.on('error', () => stream.destroy());
  child.on('error', () => stream.destroy());
  child.once('exit', () => child.stdin.destroy());
  stream.on('error', () => undefined).once('close', () => child.kill('SIGKILL'));
  child.unref();
  for (const end of [child.stdin, child.stdout]) if (end instanceof Socket) end.unref();
  return stream;
}
