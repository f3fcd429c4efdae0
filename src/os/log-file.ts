import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { createStream } from 'rotating-file-stream';
import { makeDirectory } from './directory.ts';
import { ioError } from './io-error.ts';
import { openToAppend } from './regular-file.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogFile {
  write(level: LogLevel, message: string, values?: Record<string, unknown>): void;
  setLevel(level: LogLevel): void;
  /** Flushes pending lines. */
  close(): Promise<void>;
}

const NAME = 'service';
const SIZE = '5M';
/** Rotated files kept beside the current one. */
const KEPT = 2;

/** Redacted wherever they appear in the values of a line. */
const SECRETS = ['password', 'authorization', 'Authorization', 'RDCTL_PASSWORD'];
const REDACTED = SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `*.*.*.${name}`, `*.*.*.*.${name}`]);

/**
 * The log of the service: JSON lines in `<directory>/service.log`, 0600, three files of 5 MB at most. Refuses to write through a link.
 * @param onTrouble called once when lines can no longer be written; the service continues without them.
 */
export async function openLog(directory: string, level: LogLevel, onTrouble: (error: Error) => void): Promise<LogFile> {
  await makeDirectory(directory);
  const stream = (await canAppend(join(directory, `${NAME}.log`), onTrouble)) ? rotating(directory) : discardStream();
  stream.once('error', onTrouble);
  stream.on('error', () => undefined);
  const logger = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: REDACTED, censor: '[hidden]' },
      serializers: { error: pino.stdSerializers.errWithCause },
    },
    stream,
  );
  return {
    write: (at, message, values = {}) => logger[at](values, message),
    setLevel(next) {
      logger.level = next;
    },
    close: () => new Promise((resolve) => stream.end(() => resolve())),
  };
}

/** The stream below follows links when it opens its file; rotation renames full ones, which replaces links. */
async function canAppend(file: string, onTrouble: (error: Error) => void): Promise<boolean> {
  try {
    await (await openToAppend(file)).close();
    return true;
  } catch (cause) {
    onTrouble(ioError('open', file, cause));
    return false;
  }
}

function rotating(directory: string): Writable {
  return createStream((index) => (index === null ? `${NAME}.log` : `${NAME}.${Number(index)}.log`), {
    path: directory,
    size: SIZE,
    rotate: KEPT,
    mode: 0o600,
  });
}

function discardStream(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done() });
}
