import { existsSync, lstatSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PRODUCT } from '../product.ts';

/**
 * The directory of this user for what does not outlive a start of the host. Not from the environment: a service that starts at the
 * login and one that is started by hand have to mean the same.
 */
export function runtimeDirectory(uid: number, exists: (path: string) => boolean = existsSync): string {
  if (uid === 0) return join('/run', PRODUCT.name);
  const own = join('/run/user', String(uid));
  return exists(own) ? join(own, PRODUCT.name) : join(tmpdir(), `${PRODUCT.name}-${uid}`);
}

/** Whether it is a directory, not a link to one, of this user, and no other user can write there. False when it is not there. */
export function isOwnDirectory(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isDirectory() === true && facts.uid === process.getuid?.() && (facts.mode & 0o022) === 0;
}
