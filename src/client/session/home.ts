import { userHome } from '../../os/user-directories.ts';
import type { Platform } from '../../settings/field.ts';
import { requirePrivate } from '../../state/ownership.ts';
import { type Places, places } from '../../state/places.ts';
import type { Connection } from '../connection.ts';
import type { ConnectionFlags } from '../discovery.ts';

/** The environment in which a program finds, starts and ends a service. */
export interface SessionIo {
  env: Readonly<Record<string, string | undefined>>;
  platform: Platform;
  /** Program and first arguments that start the service. */
  self: readonly string[];
  /** Prints a notice. */
  err(text: string): void;
  /** Whether a status line can be drawn with `err`. */
  progress: boolean;
  signal: AbortSignal;
}

/** A program that uses a service. */
export interface Caller {
  io: SessionIo;
  /** The flags that may name the service. */
  globals: ConnectionFlags;
  /** Finds the connection; throws `ERR_NOT_RUNNING` or `ERR_CONNECTION_SETTINGS`. */
  connect(): Promise<Connection>;
}

/** Returns the paths of this home, for a command that only prints them. */
export function placesOf(io: Pick<SessionIo, 'env' | 'platform'>): Places {
  return places(io.env, io.platform, userHome(io.env, io.platform));
}

/** Returns the paths of this home. Throws `ERR_NOT_PRIVATE` if another user could have written the files. */
export function homeOf(io: Pick<SessionIo, 'env' | 'platform'>): Places {
  const here = placesOf(io);
  requirePrivate(here);
  return here;
}

/** True when flags or the environment name a service: no other one may answer instead. */
export function namesService(globals: ConnectionFlags, io: Pick<SessionIo, 'env'>): boolean {
  return Boolean(globals['config-path'] || globals.host || globals.user || io.env.RDCTL_CONFIG_PATH);
}

/** True when the listener may belong to another application, or to a service that the user named. */
export function isElsewhere({ foreign }: Connection, globals: ConnectionFlags, io: Pick<SessionIo, 'env'>): boolean {
  return foreign || namesService(globals, io);
}
