import { dirname } from 'node:path';
import { LOCKED, RdError } from '../errors.ts';
import { createFileAtomic, type FileOperations, fileOperations, removeLeftovers } from '../os/atomic-file.ts';
import { makeDirectory } from '../os/directory.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import type { ProcessIdentity } from '../os/process-list.ts';
import { type ProcessTable, processTable } from '../os/process-table.ts';
import { readableRecord } from '../os/record.ts';
import { isThere } from '../os/regular-file.ts';
import type { MaintenanceLock } from '../reconcile/maintenance.ts';

/**
 * The file that keeps the backend stopped while a snapshot or restore works on its data. Other tools check its presence and `action`; the
 * process is our own addition, to distinguish a stale lock from one in use.
 */
export interface BackendLock extends MaintenanceLock {
  /** Returns the content of the file, or undefined if there is none. */
  read(): Promise<BackendLockFacts | undefined>;
  /** Removes the file of any owner. Idempotent. */
  remove(): Promise<void>;
}

interface BackendLockFacts {
  /** The holder's activity: `Creating snapshot "x"`. Absent if the file does not state it. */
  action?: string;
  /** The holder, if it was a service of ours. */
  holder?: ProcessIdentity;
  /** True when the holder is known and dead. */
  abandoned: boolean;
}

/** Creates the lock at `path`. With the `operations` of a reserve, it can be taken on a full disk, where a reset is the way to make room. */
export function backendLock(
  path: string,
  processes: ProcessTable = processTable,
  operations: FileOperations = fileOperations,
): BackendLock {
  async function read(): Promise<BackendLockFacts | undefined> {
    if (!(await isThere(path))) return undefined;
    // An unreadable file counts as present.
    const { action, pid, started } = (await readableRecord(path)) ?? {};
    const holder = typeof pid === 'number' ? { pid, ...(typeof started === 'string' ? { started } : {}) } : undefined;
    return {
      ...(typeof action === 'string' ? { action } : {}),
      ...(holder ? { holder } : {}),
      abandoned: holder !== undefined && !(await processes.isAlive(holder)),
    };
  }

  async function remove(): Promise<void> {
    await operations.unlink(path).catch((cause: unknown) => {
      if (!isMissing(cause)) throw ioError('remove', path, cause);
    });
  }

  return {
    read,
    remove,
    isHeld: () => isThere(path),
    async take(action) {
      const self = await processes.self();
      try {
        await makeDirectory(dirname(path));
        await removeLeftovers(path);
        // A lock without its holder would look foreign after a kill, so it appears complete.
        await createFileAtomic(path, `${JSON.stringify({ action, ...self }, null, 2)}\n`, 0o644, operations);
      } catch (cause) {
        if (systemCode(cause) === 'EEXIST') throw new RdError('ERR_BACKEND_LOCKED', LOCKED, { cause });
        throw ioError('create', path, cause);
      }
    },
    async release() {
      const facts = await read();
      const self = await processes.self();
      if (facts?.holder?.pid === self.pid && facts.holder.started === self.started) await remove();
    },
  };
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
}
