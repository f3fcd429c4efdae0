import { lstat, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';
import { refuseMoved } from './home-move.ts';
import { ioError, systemCode } from './io-error.ts';

const MODE = 0o700;

/**
 * Creates a directory and those above it, private to the user. Level by level: the recursive form of the system call's wrapper
 * hides the cause on a read-only file system, and never ends on one that takes no new names.
 * @throws RdError `ERR_IO` naming the directory and what is in the way, `ERR_HOME_MOVED`.
 */
export async function makeDirectory(path: string): Promise<void> {
  refuseMoved(path);
  try {
    await make(path);
  } catch (cause) {
    throw await directoryError(path, cause);
  }
}

async function make(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: MODE });
  } catch (error) {
    // On a read-only file system also a directory that is there is refused.
    if (await isDirectory(path)) return;
    const parent = dirname(path);
    if (systemCode(error) !== 'ENOENT' || parent === path) throw error;
    if (!(await isDirectory(parent))) await make(parent);
    // Once more, also where the one above it is there by now: another program may have made it since the first try.
    await mkdir(path, { mode: MODE }).catch(async (again: unknown) => {
      if (!(await isDirectory(path))) throw again;
    });
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}

async function directoryError(path: string, cause: unknown): Promise<RdError> {
  const code = systemCode(cause);
  const advice = 'Set RDCTL_HOME to a directory that can be created.';
  const failed = (reason: string) =>
    new RdError('ERR_IO', `could not create the directory ${path}: ${reason}`, { cause, advice });
  if (code === 'ENOENT') return failed(`${await nearest(path)} takes no new directories`);
  if (code === 'ENOTDIR' || code === 'EEXIST') return failed(await obstacle(await nearest(path)));
  return ioError('create the directory', path, cause);
}

/** What is in the place of a directory. */
async function obstacle(path: string): Promise<string> {
  const isLink = await stat(path).then(
    () => false,
    () => true,
  );
  return `${path} is ${isLink ? 'a link that leads nowhere' : 'a file'}`;
}

/** The path itself or the first above it that is there, a link to nothing included. */
async function nearest(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const there = await lstat(at).then(
      () => true,
      () => false,
    );
    if (there || at === dirname(at)) return at;
  }
}
