import { rm, unlink } from 'node:fs/promises';
import { ioError, systemCode } from '../os/io-error.ts';
import { type ProcessTable, processTable } from '../os/process-table.ts';
import { readableRecord, writeRecord } from '../os/record.ts';
import { PRODUCT } from '../product.ts';

/** The document of `schemas/connection.json`, in the order of its members. */
export interface ConnectionDocument {
  user: string;
  password: string;
  port: number;
  pid: number;
}

/** Announces a listening service; only its user can read the file. */
export async function writeConnectionFile(
  path: string,
  { user, password, port, pid }: ConnectionDocument,
): Promise<void> {
  await writeRecord(path, { user, password, port, pid, revision: PRODUCT.revision });
}

/** Removes this process's announcement; leaves another one alone. */
export async function removeConnectionFile(path: string, pid: number, port: number): Promise<void> {
  const record = await readableRecord(path);
  if (record?.pid !== pid || record.port !== port) return;
  await unlink(path).catch((cause: unknown) => {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
  });
}

/** True if the process named by the file has ended, or is `pid`, which has ended. False for an unreadable file. */
export async function isStale(
  path: string,
  pid: number | undefined,
  processes: Pick<ProcessTable, 'isAlive'> = processTable,
): Promise<boolean> {
  const { pid: owner } = (await readableRecord(path)) ?? {};
  if (typeof owner !== 'number') return false;
  return owner === pid || !(await processes.isAlive({ pid: owner }));
}

/** Removes a stale file of a killed service (`pid` if known) or one that names no process. Keeps that of a live process. */
export async function removeStaleConnectionFile(path: string, pid: number | undefined): Promise<void> {
  const record = await readableRecord(path);
  if (typeof record?.pid === 'number' && !(await isStale(path, pid))) return;
  await rm(path, { force: true }).catch((cause: unknown) => {
    throw ioError('remove', path, cause);
  });
}
