import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import { RdError } from '../errors.ts';
import { systemCode } from './io-error.ts';
import { shellLine } from './program.ts';

// Write permission for others. Between the check for a missing directory and its creation, another user who can write to the parent, such as `/tmp`,
// can create it or a link in its place. The caller that checked registers the directory here. Once it belongs to this user, the sticky bit keeps the
// name.

const OTHERS_WRITE = 0o022;

/** Directories that were missing, and whose parents others may write to. */
const awaited = new Set<string>();

/**
 * Registers a missing directory if others may write to its parent.
 * @param path found missing, in an existing directory.
 */
export function awaitDirectory(path: string): void {
  try {
    if ((statSync(dirname(path)).mode & OTHERS_WRITE) !== 0) awaited.add(path);
  } catch (error) {
    // Where this user cannot read, it cannot create anything either.
    if (systemCode(error) === undefined) throw error;
  }
}

/**
 * Creates the awaited directory that this path is, or is in. Only once: nobody else can replace it then.
 * @throws RdError `ERR_NOT_PRIVATE` when another user was faster. Other obstacles are left to the caller that creates the rest of the path.
 */
export function makeAwaited(path: string, mode: number): void {
  for (const base of awaited) {
    if (path !== base && !path.startsWith(base + sep)) continue;
    try {
      mkdirSync(base, { mode });
    } catch (cause) {
      if (systemCode(cause) !== 'EEXIST') continue;
      refuseForeign(base, cause);
    }
    awaited.delete(base);
  }
}

function refuseForeign(base: string, cause: unknown): void {
  const facts = lstatSync(base, { throwIfNoEntry: false });
  if (facts && (facts.uid === 0 || facts.uid === process.geteuid?.())) return;
  const owner = facts ? ` (uid ${facts.uid})` : '';
  throw new RdError('ERR_NOT_PRIVATE', `another user${owner} has just created ${base}, so nothing is kept there`, {
    cause,
    advice: `Set RDCTL_HOME to a directory that only you can write. The owner of the directory can remove what is there: ${shellLine(['rm', '-r', base])}`,
  });
}
