// Synchronous: these files are tiny, and each step through the thread pool takes as long as reading one of them.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { type JsonObject, parseObject } from '../json.ts';
import { type Place, parsePlace } from '../os/directory-identity.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import type { ProcessIdentity } from '../os/process-list.ts';

/** The holder of a lock, as recorded in its file. */
export interface Holder extends ProcessIdentity {
  /** RFC 3339. */
  since: string;
  /** Port of a service, once it listens. */
  port?: number;
  /** The release of a service, and the revision of its interface. Absent for releases from before there were revisions. */
  version?: string;
  revision?: number;
  /** The connection file of the service exists: true from its writing to its removal. */
  announced?: boolean;
  /** The service serves a single command, which ends it. */
  idle?: boolean;
  /** The service is stopping on request. It may respond for a while, but accepts no changes. */
  ending?: boolean;
  /** The service released the lock, and its backend may still run. */
  left?: boolean;
  /** The lock directory as it was when the lock was taken. */
  at?: Place;
}

/** A file of a lock. */
export interface Entry extends Holder {
  name: string;
  held: boolean;
}

/** Maximum bytes of a lock's file. */
const LIMIT = 64 * 1024;

/**
 * Reads an entry. Undefined if the file is gone.
 * @throws RdError `ERR_IO` for one that is not ours or cannot be read.
 */
export function readEntry(directory: string, name: string): Entry | undefined {
  const path = join(directory, name);
  try {
    return parseEntry(path, name, recordIn(path));
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw cause instanceof RdError ? cause : ioError('read', path, cause);
  }
}

/** Reads an entry. Undefined if the file is gone, or is not an entry. */
export function readableEntry(directory: string, name: string): Entry | undefined {
  try {
    return readEntry(directory, name);
  } catch {
    return undefined;
  }
}

function recordIn(path: string): JsonObject | 'damaged' {
  // Non-blocking: a pipe in its place would hang.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const facts = fstatSync(file);
    return (facts.isFile() && facts.size <= LIMIT && parseObject(readFileSync(file, 'utf8'))) || 'damaged';
  } finally {
    closeSync(file);
  }
}

function parseEntry(path: string, name: string, value: JsonObject | 'damaged'): Entry {
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
    ...(typeof value.version === 'string' ? { version: value.version } : {}),
    ...(typeof value.revision === 'number' ? { revision: value.revision } : {}),
    ...(typeof value.announced === 'boolean' ? { announced: value.announced } : {}),
    ...(value.idle === true ? { idle: true } : {}),
    ...(value.ending === true ? { ending: true } : {}),
    ...(value.left === true ? { left: true } : {}),
    ...(at ? { at } : {}),
  };
}
