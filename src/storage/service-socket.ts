// Synchronous, and without what making it takes: every short command looks for the socket.
import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Places } from './places.ts';
import { isOwnDirectory, runtimeDirectory } from './runtime-directory.ts';

const NAME = 'service.sock';
/** The kernel's limit for the path of a Unix socket, without the end mark; that of macOS, which is the shorter one. */
const MAX_SOCKET_PATH = 103;

export interface SocketPlace {
  /** Private to the user. */
  directory: string;
  path: string;
  /** Outside of the directories of this home, because their path is too long. */
  elsewhere: boolean;
}

/** Where the service of a home listens beside its port. Undefined on Windows. */
export function socketPlace({ state }: Pick<Places, 'state'>): SocketPlace | undefined {
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
 * The socket of a home's service, where there is one that nobody but this user can have made: it is this user's, in a directory that no
 * other user can write. Whether anybody listens on it is another matter. Changes nothing, and never throws.
 */
export function serviceSocket(here: Pick<Places, 'state'>): string | undefined {
  const place = socketPlace(here);
  if (!place) return undefined;
  try {
    const directories = place.elsewhere ? [dirname(place.directory), place.directory] : [place.directory];
    return directories.every(isOwnDirectory) && isOwnSocket(place.path) ? place.path : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it is a socket of this user. Throws what the system says where it cannot be looked at. */
export function isOwnSocket(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isSocket() === true && facts.uid === process.getuid?.();
}
