import { existsSync, lstatSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PRODUCT } from '../product.ts';

/** The user's runtime directory. Not from the environment: a service started at login and one started by hand must agree on it. */
export function runtimeDirectory(uid: number, exists: (path: string) => boolean = existsSync): string {
  if (uid === 0) return join('/run', PRODUCT.name);
  const own = join('/run/user', String(uid));
  return exists(own) ? join(own, PRODUCT.name) : join(tmpdir(), `${PRODUCT.name}-${uid}`);
}

/** Whether it is a directory, not a link, owned by this user and not writable for others. False when it is missing. */
export function isOwnDirectory(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isDirectory() === true && facts.uid === process.getuid?.() && (facts.mode & 0o022) === 0;
}
