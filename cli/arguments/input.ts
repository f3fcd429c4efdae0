import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { escapedHidden } from '../../src/settings/printable.ts';
import type { Io } from '../command.ts';

/** Maximum bytes read from standard input, above the request size limit. */
const LIMIT = 16 * 1024 * 1024;

/** Reads the `--input` file; `-` is standard input. Throws `ERR_IO` with the wording of Rancher Desktop's `rdctl`. */
export async function readInput(file: string, io: Pick<Io, 'cwd' | 'readStdin'>): Promise<Buffer> {
  if (file === '-') {
    const bytes = await io.readStdin(LIMIT);
    if (bytes.length <= LIMIT) return bytes;
    throw new RdError('ERR_IO', 'standard input has more than 16 MiB, and no more is read');
  }
  try {
    return await readFile(resolve(io.cwd, file));
  } catch (cause) {
    throw openError(file, cause);
  }
}

/** An unreadable `--input` file, worded as in Rancher Desktop's `rdctl`. */
export function openError(file: string, cause: unknown): RdError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return new RdError('ERR_IO', `open ${escapedHidden(file)}: ${REASONS[String(code)] ?? String(code)}`, { cause });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENOTDIR: 'not a directory',
};
