import { mkdir, rmdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';
import { ioError, systemCode } from './io-error.ts';

const MODE = 0o700;

/**
 * Creates a directory and those above it, private to the user.
 * @throws RdError `ERR_IO` naming the directory and what is in the way; the system tells some causes wrongly, and they are looked
 * for: a read-only file system answers with `ENOENT` where several levels are missing.
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: MODE });
  } catch (cause) {
    throw await directoryError(path, cause);
  }
}

async function directoryError(path: string, thrown: unknown): Promise<RdError> {
  let missing = path;
  for (let at = path; ; at = dirname(at)) {
    const facts = await stat(at).catch(() => undefined);
    if (facts && !facts.isDirectory()) {
      return new RdError('ERR_IO', `could not create the directory ${path}: ${at} is a file`, {
        cause: thrown,
        advice: 'Move that file away, or set RDCTL_HOME to another directory.',
      });
    }
    if (facts || at === dirname(at)) break;
    missing = at;
  }
  const cause = await failureOf(missing, thrown);
  if (systemCode(cause) !== 'ENOENT') return ioError('create the directory', path, cause);
  return new RdError('ERR_IO', `could not create the directory ${path}: ${dirname(missing)} takes no new directories`, {
    cause,
    advice: 'Set RDCTL_HOME to a directory on another file system.',
  });
}

/** One level alone gets the true answer. */
async function failureOf(path: string, thrown: unknown): Promise<unknown> {
  try {
    await mkdir(path, { mode: MODE });
    await rmdir(path);
    return thrown;
  } catch (cause) {
    return cause;
  }
}
