import { RdError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { type Place, parsePlace } from '../os/directory-identity.ts';
import type { ProcessIdentity } from '../os/process-table.ts';

/** Holder of a lock, as recorded in its file. */
export interface Holder extends ProcessIdentity {
  /** RFC 3339. */
  since: string;
  /** Port of a service, once it listens. */
  port?: number;
  /** The connection file of the service exists: true from its writing to its removal. */
  announced?: boolean;
  /** It serves a single command, which ends it. */
  idle?: boolean;
  /** It is stopping on request. It may respond for a while, but accepts no changes. */
  ending?: boolean;
  /** It released the lock, and its backend may still run. */
  left?: boolean;
  /** The lock directory as it was when the lock was taken. */
  at?: Place;
}

/** A file of a lock. */
export interface Entry extends Holder {
  name: string;
  held: boolean;
}

/** @throws RdError `ERR_IO` for a file that is not ours. */
export function parseEntry(path: string, name: string, value: JsonObject | 'damaged'): Entry {
  if (value === 'damaged' || typeof value.pid !== 'number' || typeof value.since !== 'string') {
    throw new RdError('ERR_IO', `the lock file ${path} was not created by rdctl`, {
      advice: 'Remove it and try again.',
    });
  }
  const at = parsePlace(value.at);
  return {
    name,
    pid: value.pid,
    since: value.since,
    held: value.held === true,
    ...(typeof value.started === 'string' ? { started: value.started } : {}),
    ...(typeof value.port === 'number' ? { port: value.port } : {}),
    ...(typeof value.announced === 'boolean' ? { announced: value.announced } : {}),
    ...(value.idle === true ? { idle: true } : {}),
    ...(value.ending === true ? { ending: true } : {}),
    ...(value.left === true ? { left: true } : {}),
    ...(at ? { at } : {}),
  };
}
