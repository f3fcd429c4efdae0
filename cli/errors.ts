import { ERRORS, type ErrorCode, messageOf, RdError } from '../src/errors.ts';
import { defined } from '../src/json.ts';
import { escapeInLines } from '../src/settings/printable.ts';
import type { Command, Io } from './command.ts';
import { usageBlock } from './usage-line.ts';

/** Conventional exit codes after a signal. */
const SIGNAL_EXIT: Readonly<Record<string, number>> = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

export interface Failure {
  error: unknown;
  /** The failed command; undefined until it is known. */
  command: Command | undefined;
  verbose: boolean;
  /** Whether `-o json` was given: the failure is then printed as a document of `schemas/error.json`. */
  json?: boolean;
}

/**
 * Prints the failure on stderr and returns the exit code; nothing else does either. With `-o json` the new commands
 * also print it on stdout, which is still empty by then.
 */
export function reportFailure(failure: Failure, io: Io): number {
  if (failure.json && failure.command?.classic === false && !outputProblem(failure.error)) {
    try {
      io.out(`${JSON.stringify(documentOf(failure.error), null, 2)}\n`);
    } catch (error) {
      // The text below explains the failure first.
      if (!outputProblem(error)) throw error;
    }
  }
  return reportText(failure, io);
}

/** Explains a failure to write the output; returns undefined for any other error. */
function outputProblem(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) return undefined;
  // Errors with a path come from files, which the storage layer reports.
  return error.syscall === 'write' && !('path' in error) ? OUTPUT_PROBLEMS[String(error.code)] : undefined;
}

const OUTPUT_PROBLEMS: Readonly<Record<string, string>> = {
  ENOSPC: 'no space left on the device',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be too large',
  EIO: 'device error',
};

function reportText({ error, command, verbose }: Failure, io: Io): number {
  const aborted = io.signal.aborted;
  if (!(error instanceof RdError)) {
    if (aborted && (error === io.signal.reason || isAbort(error))) return reportCancellation(io);
    const problem = outputProblem(error);
    if (problem !== undefined) {
      io.err(`Error: could not write the output: ${problem}\nThe output is incomplete.\n`);
      return 1;
    }
    io.err(`Error: ${escapeInLines(unexpectedErrorText(error))}\n`);
    io.err(verbose ? `${trace(error)}\n` : 'This is a bug in rdctl. Run again with --verbose for details.\n');
    return 1;
  }
  if (error.code === 'ERR_CANCELLED' && aborted && error.advice === undefined) return reportCancellation(io);
  // Declining is not an error.
  const decided = (error.code === 'ERR_CONSENT_NEEDED' || error.code === 'ERR_CANCELLED') && error.advice === undefined;
  // Messages may contain text from files, registries and other programs.
  const printLine = (text: string) => io.err(`${escapeInLines(text)}\n`);
  printLine(`${decided ? '' : 'Error: '}${error.message}`);
  for (const line of error.details) printLine(line);
  if (error.advice !== undefined) printLine(error.advice);
  if (verbose) for (const sentence of causes(error)) printLine(`caused by: ${sentence}`);
  if (error.code === 'ERR_USAGE') io.err(usageBlock(command));
  if (error.code === 'ERR_CANCELLED') return signalExit(io);
  return exitCode(error.code, command);
}

/** Returns the document of `schemas/error.json`. */
function documentOf(error: unknown): object {
  if (!(error instanceof RdError)) return { code: 'ERR_INTERNAL', message: unexpectedErrorText(error) };
  const { code, message, advice, details, findings } = error;
  return {
    code,
    message,
    ...defined({ advice }),
    ...(details.length === 0 ? {} : { details }),
    ...(findings.length === 0 ? {} : { findings }),
  };
}

/** Returns the exit code. Classic commands exit with 0 or 1, except for a wrong target, which Rancher Desktop's `rdctl` does not have. */
function exitCode(code: ErrorCode, command: Command | undefined): number {
  if (command && !command.classic) return ERRORS[code].exit;
  return code === 'ERR_WRONG_TARGET' ? ERRORS[code].exit : 1;
}

function reportCancellation(io: Io): number {
  io.err('Interrupted.\n');
  return signalExit(io);
}

/** Returns the exit code of the signal that aborted the command. */
export function signalExit(io: Pick<Io, 'signal'>): number {
  const reason: unknown = io.signal.reason;
  return (typeof reason === 'string' ? SIGNAL_EXIT[reason] : undefined) ?? 130;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || ('code' in error && error.code === 'ABORT_ERR'));
}

function unexpectedErrorText(error: unknown): string {
  const text = messageOf(error);
  return text === '' ? 'unexpected error' : text.split('\n', 1).join('');
}

/** Returns the causes of an expected failure, one sentence each, without repetitions. */
function causes(error: RdError): string[] {
  const printed = [error.message];
  for (let each = error.cause; each !== undefined; each = each instanceof Error ? each.cause : undefined) {
    const sentence = unexpectedErrorText(each);
    if (!printed.some((text) => text.includes(sentence))) printed.push(sentence);
  }
  return printed.slice(1);
}

function trace(error: unknown): string {
  const lines: string[] = [];
  for (let each: unknown = error; each !== undefined; each = each instanceof Error ? each.cause : undefined) {
    const text = each instanceof Error ? (each.stack ?? each.message) : String(each);
    lines.push(lines.length === 0 ? text : `caused by: ${text}`);
  }
  return lines.join('\n');
}
