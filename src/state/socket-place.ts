import { chmod, lstat, rmdir, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';
import { makeDirectory } from '../os/directory.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { isOwnDirectory } from '../os/runtime-directory.ts';
import type { Places } from './places.ts';
import { isOwnSocket, socketPlace } from './service-socket.ts';

/**
 * Creates the directory and removes a stale socket. Requires the home's lock.
 * @returns where to listen; undefined on Windows.
 * @throws RdError `ERR_IO` when others can write the directory, or the path is not a socket of this user.
 */
export async function makeServiceSocketPlace(here: Pick<Places, 'state'>): Promise<string | undefined> {
  const place = socketPlace(here);
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

/** Removes the socket, and its dedicated directory. Requires the home's lock. Throws `ERR_IO` as above. */
export async function removeServiceSocket(here: Pick<Places, 'state'>): Promise<void> {
  const place = socketPlace(here);
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
    `${path} is needed for the socket of the service, and is not a directory of yours alone`,
    {
      advice: `Look at it with \`ls -ld ${path}\`, and move it away.`,
    },
  );
}

async function removeSocket(path: string): Promise<void> {
  try {
    if (!isOwnSocket(path)) {
      await lstat(path);
      throw new RdError('ERR_IO', `${path} is in the place of the socket of the service, and is no socket of yours`, {
        advice: 'Look at it, and move it away.',
      });
    }
    await unlink(path);
  } catch (cause) {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
  }
}
