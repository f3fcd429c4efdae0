import { statSync } from 'node:fs';
import { lstat, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';
import { makeAwaited } from './awaited-directory.ts';
import { refuseMoved } from './directory-identity.ts';
import { ioError, systemCode } from './io-error.ts';

const MODE = 0o700;

/**
 * Creates a directory and its parents, private to the user. Level by level: Node's recursive form hides the cause on a read-only file
 * system, and never returns on one that accepts no new names.
 * @throws RdError `ERR_IO` naming the directory and the obstacle, `ERR_HOME_MOVED`, `ERR_NOT_PRIVATE` as `makeAwaited`.
 */
export async function makeDirectory(path: string): Promise<void> {
  refuseMoved(path);
  makeAwaited(path, MODE);
  if (isAlreadyDirectory(path)) return;
  try {
    await make(path);
  } catch (cause) {
    throw await directoryError(path, cause);
  }
}

/** True for an existing directory, the usual case, without a wait. */
function isAlreadyDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

async function make(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: MODE });
  } catch (error) {
    // On a read-only file system an existing directory is refused as well.
    if (await isDirectory(path)) return;
    const parent = dirname(path);
    if (systemCode(error) !== 'ENOENT' || parent === path) throw error;
    if (!(await isDirectory(parent))) await make(parent);
    // Retry even if the parent exists by now: another program may have created it meanwhile.
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

/** Describes the file that exists at the path of a directory. */
async function obstacle(path: string): Promise<string> {
  const isLink = await stat(path).then(
    () => false,
    () => true,
  );
  return `${path} is ${isLink ? 'a dangling symbolic link' : 'a file'}`;
}

/** Returns the path itself or its nearest existing parent, including a dangling link. */
async function nearest(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const there = await lstat(at).then(
      () => true,
      () => false,
    );
    if (there || at === dirname(at)) return at;
  }
}
