import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { openLog } from './program-log.ts';
import { openToRead } from './regular-file.ts';

/** A program that outlives this process. */
export interface DetachSpec {
  argv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Its standard input; never visible to others. */
  input?: string;
  /** Receives its standard error, appended and bounded. */
  logFile: string;
}

export interface Detached {
  pid: number;
  /** True once it has ended. */
  ended(): boolean;
  /** True once it has failed: with a nonzero exit code or by a signal. */
  failed(): boolean;
  /** Its standard error since it was started. */
  output(): Promise<string>;
}

const MAX_OUTPUT = 64 * 1024;

/**
 * Spawns a program in a session of its own that holds no stream of this process, so that readers of our output see its end. Resolves once
 * it has been spawned.
 * @throws RdError `ERR_IO` when it cannot be started.
 */
export async function detach(spec: DetachSpec): Promise<Detached> {
  const [program = '', ...args] = spec.argv;
  const log = await openLog(spec.logFile);
  const from = (await log.stat()).size;
  const input = spec.input === undefined ? undefined : await inputFile(spec.input);
  try {
    const child = spawn(program, args, {
      detached: true,
      windowsHide: true,
      env: { ...spec.env },
      stdio: [input?.fd ?? 'ignore', 'ignore', log.fd],
    });
    await once(child, 'spawn');
    let ended = false;
    let failed = false;
    child.on('error', () => undefined);
    child.once('exit', (code) => {
      ended = true;
      failed = code !== 0;
    });
    child.unref();
    return {
      pid: child.pid ?? 0,
      ended: () => ended,
      failed: () => failed,
      output: () => readFrom(spec.logFile, from),
    };
  } catch (cause) {
    const reason =
      cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
        ? 'no such file or directory'
        : String(cause);
    throw new RdError('ERR_IO', `fork/exec ${program}: ${reason}`, {
      cause,
      advice: 'Check the path and that it is executable.',
    });
  } finally {
    await log.close();
    await input?.close();
  }
}

/** An unlinked file open for reading: a pipe would have to stay open, an argument or a variable would be visible. */
async function inputFile(text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'rdctl-'));
  try {
    const path = join(folder, 'input');
    await writeFile(path, text, { mode: 0o600 });
    return await open(path, 'r');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function readFrom(file: string, from: number): Promise<string> {
  const handle = await openToRead(file);
  try {
    const size = (await handle.stat()).size;
    // A log that was rotated meanwhile is read from its start.
    const start = from <= size ? from : 0;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size - start, MAX_OUTPUT)), {
      position: start,
    });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}
