import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { chmod, lstat, rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RdError } from '../errors.ts';
import { makeDirectory } from '../os/directory.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { isOwnDirectory, runtimeDirectory } from '../os/user-directories.ts';
import type { Places } from './places.ts';

const NAME = 'service.sock';
/** The limit for a Unix socket path without the terminator; that of macOS, which is shorter. */
const MAX_SOCKET_PATH = 103;

interface SocketPlace {
  /** Private to the user. */
  directory: string;
  path: string;
  /** Outside the directories of this home, because their path is too long. */
  elsewhere: boolean;
}

/** Returns the path at which the service of a home listens beside its port, or undefined on Windows. */
function socketPlace({ state }: Pick<Places, 'state'>): SocketPlace | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const inside = join(state, 'run');
  const elsewhere = Buffer.byteLength(join(inside, NAME)) > MAX_SOCKET_PATH;
  const directory = elsewhere ? join(runtimeDirectory(uid), `service-${shortId(state)}`) : inside;
  return { directory, path: join(directory, NAME), elsewhere };
}

function shortId(state: string): string {
  return createHash('sha256').update(state).digest('hex').slice(0, 8);
}

/**
 * Returns the service socket of a home, if only this user can have created it: it belongs to this user, in a directory that nobody else can write. It
 * may be stale. Changes nothing, and never throws.
 */
export function serviceSocket(places: Pick<Places, 'state'>): string | undefined {
  const place = socketPlace(places);
  if (!place) return undefined;
  try {
    const directories = place.elsewhere ? [dirname(place.directory), place.directory] : [place.directory];
    return directories.every(isOwnDirectory) && isOwnSocket(place.path) ? place.path : undefined;
  } catch {
    return undefined;
  }
}

/** True if it is a socket of this user. Throws the system error when it cannot be checked. */
function isOwnSocket(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isSocket() === true && facts.uid === process.getuid?.();
}

/**
 * Creates the directory and removes a stale socket. Requires the home's lock.
 * @returns the path to listen on; undefined on Windows.
 * @throws RdError `ERR_IO` when others can write the directory, or the path is not a socket of this user.
 */
export async function makeServiceSocketPlace(places: Pick<Places, 'state'>): Promise<string | undefined> {
  const place = socketPlace(places);
  if (!place) return undefined;
  const { directory, path, elsewhere } = place;
  await makeDirectory(directory);
  if (elsewhere) refuseForeign(dirname(directory));
  refuseForeign(directory);
  await chmod(directory, 0o700).catch((cause: unknown) => {
    throw ioError('make private', directory, cause);
  });
  await removeSocket(path);
  return path;
}

/**
 * Removes the socket, and its dedicated directory. Requires the home's lock.
 * @throws RdError `ERR_IO` when others can write the directory, or the path is not a socket of this user.
 */
export async function removeServiceSocket(places: Pick<Places, 'state'>): Promise<void> {
  const place = socketPlace(places);
  if (!place || !isOwnDirectory(place.directory)) return;
  await removeSocket(place.path);
  // Not empty: another program uses it.
  for (const directory of place.elsewhere ? [place.directory, dirname(place.directory)] : [place.directory]) {
    await rmdir(directory).catch(() => undefined);
  }
}

function refuseForeign(path: string): void {
  if (isOwnDirectory(path)) return;
  throw new RdError(
    'ERR_IO',
    `${path} is needed for the socket of the service, but is not a directory that only you can write`,
    {
      advice: `Check it with \`ls -ld ${path}\`, and move it away.`,
    },
  );
}

async function removeSocket(path: string): Promise<void> {
  try {
    if (!isOwnSocket(path)) {
      await lstat(path);
      throw new RdError('ERR_IO', `${path} is in the place of the service socket, but is not a socket that you own`, {
        advice: 'Check it, and move it away.',
      });
    }
    await unlink(path);
  } catch (cause) {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
  }
}
