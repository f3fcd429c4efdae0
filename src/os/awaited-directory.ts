import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import { RdError } from '../errors.ts';
import { systemCode } from './io-error.ts';
import { shellLine } from './program.ts';

// Between the look at a directory that is missing and its creation, another user can create it, or a link in its place, where both may write, as in
// `/tmp`. Whoever looked says so here. Once it belongs to this user, the sticky bit keeps the name.

const OTHERS_WRITE = 0o022;

/** Directories that were missing, and whose parents others may write to. */
const awaited = new Set<string>();

/** @param path found missing, in a directory that is there. */
export function awaitDirectory(path: string): void {
  try {
    if ((statSync(dirname(path)).mode & OTHERS_WRITE) !== 0) awaited.add(path);
  } catch (error) {
    // Where this user cannot look, it cannot create anything either.
    if (systemCode(error) === undefined) throw error;
  }
}

/**
 * Creates the awaited directory that this path is, or is in. Only once: nobody else can replace it then.
 * @throws RdError `ERR_NOT_PRIVATE` when another user was faster. Other obstacles are left to whoever makes the rest of the path.
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
