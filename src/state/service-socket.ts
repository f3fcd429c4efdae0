// Synchronous, without the code that creates it: every short command looks for the socket.
import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isOwnDirectory, runtimeDirectory } from '../os/runtime-directory.ts';
import type { Places } from './places.ts';

const NAME = 'service.sock';
/** The limit for a Unix socket path without the terminator; that of macOS, which is shorter. */
const MAX_SOCKET_PATH = 103;

export interface SocketPlace {
  /** Private to the user. */
  directory: string;
  path: string;
  /** Outside the directories of this home, because their path is too long. */
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
 * The service socket of a home, if only this user can have created it: it belongs to this user, in a directory that nobody else can write.
 * It may be stale. Changes nothing, and never throws.
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

/** Whether it is a socket of this user. Throws the system error when it cannot be checked. */
export function isOwnSocket(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isSocket() === true && facts.uid === process.getuid?.();
}
