import { existsSync, lstatSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PRODUCT } from '../product.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the home directory of the user: from the system's variable (`HOME`, `USERPROFILE`) in `env`, else from the account database. Empty when
 * unknown: a container may run under a number without an account.
 */
export function userHome(env: Environment = {}, platform: NodeJS.Platform = process.platform): string {
  return env[platform === 'win32' ? 'USERPROFILE' : 'HOME'] || systemHome();
}

function systemHome(): string {
  try {
    return homedir();
  } catch {
    return '';
  }
}

/**
 * Returns the user's runtime directory. Not from the environment: a service started at login and one started by hand must agree on it. On macOS in
 * `/tmp`, because the temporary directory of a user has too long a path for sockets.
 */
export function runtimeDirectory(
  uid: number,
  exists: (path: string) => boolean = existsSync,
  platform: NodeJS.Platform = process.platform,
): string {
  if (platform === 'darwin') return join('/tmp', `${PRODUCT.name}-${uid}`);
  if (uid === 0) return join('/run', PRODUCT.name);
  const own = join('/run/user', String(uid));
  return exists(own) ? join(own, PRODUCT.name) : join(tmpdir(), `${PRODUCT.name}-${uid}`);
}

/** True for a directory, not a link, owned by this user and not writable for others. False if it is missing. */
export function isOwnDirectory(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isDirectory() === true && facts.uid === process.getuid?.() && (facts.mode & 0o022) === 0;
}
