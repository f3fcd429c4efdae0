import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { RdError } from '../errors.ts';
import { defined } from '../json.ts';
import { systemCode } from './io-error.ts';

const { O_APPEND, O_CREAT, O_RDONLY, O_WRONLY } = constants;
// 0 on Windows, which has no such flag.
const O_NOFOLLOW: number = constants.O_NOFOLLOW ?? 0;
const O_NONBLOCK: number = constants.O_NONBLOCK ?? 0;

/** Maximum bytes of a file that is read as a whole. */
const MAX_BYTES = 16 * 1024 * 1024;

export interface ReadOptions {
  /** True to follow a symbolic link in place of the file; otherwise a link is an error. */
  follow?: boolean;
  /** In bytes; 16 MiB by default. */
  limit?: number;
}

/**
 * Opens a regular file for reading, and nothing else: opening a pipe or a device could block or have side effects.
 * @throws the system error (`ELOOP` for a link), `EISDIR` for a directory; RdError `ERR_IO` for any other non-file.
 */
export async function openToRead(path: string, { follow = false }: ReadOptions = {}): Promise<FileHandle> {
  return openRegular(path, O_RDONLY | (follow ? 0 : O_NOFOLLOW));
}

/** Returns the bytes of a file. Throws the errors of `openToRead`, and RdError `ERR_IO` for one that is too large. */
export async function readRegular(path: string, options: ReadOptions = {}): Promise<Buffer> {
  const { limit = MAX_BYTES } = options;
  const handle = await openToRead(path, options);
  try {
    const { size } = await handle.stat();
    if (size > limit) throw refusalError(path, `it is larger than ${limit} bytes`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/**
 * Returns the text of a file; a link is never followed. Throws the errors of `readRegular`.
 * @param limit in bytes.
 */
export async function readText(path: string, limit: number): Promise<string> {
  return (await readRegular(path, { limit })).toString('utf8');
}

/** Opens a log of ours for appending, created with 0600. A link is never followed. Throws the errors of `openToRead`. */
export async function openToAppend(path: string): Promise<FileHandle> {
  return openRegular(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW);
}

async function openRegular(path: string, flags: number): Promise<FileHandle> {
  const handle = await open(path, flags | O_NONBLOCK, 0o600).catch((error: unknown) => {
    // A socket cannot be opened, nor a pipe for writing without a reader.
    if (isError(error) && error.code === 'ENXIO')
      throw refusalError(path, 'it is a pipe or a socket, not a file', error);
    throw error;
  });
  try {
    const facts = await handle.stat();
    if (facts.isDirectory()) throw Object.assign(new Error(`EISDIR: ${path} is a directory`), { code: 'EISDIR' });
    if (!facts.isFile()) throw refusalError(path, `it is ${kindOf(facts)}, not a file`);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function kindOf(facts: Stats): string {
  return facts.isFIFO() ? 'a named pipe' : 'a device';
}

function isError(error: unknown): error is Error & { code: unknown } {
  return error instanceof Error && 'code' in error;
}

function refusalError(path: string, why: string, cause?: unknown): RdError {
  return new RdError('ERR_IO', `could not open ${path}: ${why}`, {
    ...defined({ cause }),
    advice: 'Move it away: a file is expected there.',
  });
}

/** True if the path exists, without following links. An unreadable path counts as existing: the caller's next access reports the reason. */
export async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ENOTDIR',
  );
}
