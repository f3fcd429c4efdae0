import { rm, unlink } from 'node:fs/promises';
import { isObject } from '../json.ts';
import { readIfThere, writeFileAtomic } from '../os/atomic-file.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { type ProcessTable, processTable } from '../os/process-table.ts';

/** The document of `schemas/connection.json`, in the order in which it is written. */
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
  await writeFileAtomic(path, `${JSON.stringify({ user, password, port, pid }, null, 2)}\n`);
}

/** Removes this process's announcement; leaves another one alone. */
export async function removeConnectionFile(path: string, pid: number, port: number): Promise<void> {
  try {
    const value: unknown = JSON.parse((await readIfThere(path)) ?? 'null');
    if (!isObject(value) || value.pid !== pid || value.port !== port) return;
    await unlink(path);
  } catch (cause) {
    if (cause instanceof SyntaxError || systemCode(cause) === 'ENOENT') return;
    throw ioError('remove', path, cause);
  }
}

/** True when the process named by the file has ended, or is `pid`, which has ended. False for an unreadable file. */
export async function isStale(
  path: string,
  pid: number | undefined,
  processes: Pick<ProcessTable, 'isAlive'> = processTable,
): Promise<boolean> {
  const owner = pidIn(await readIfThere(path).catch(() => undefined));
  return owner !== undefined && (owner === pid || !(await processes.isAlive({ pid: owner })));
}

/** Removes a stale file of a killed service (`pid` if known) or one that names no process. Keeps that of a live process. */
export async function removeStaleConnectionFile(path: string, pid: number | undefined): Promise<void> {
  const owner = pidIn(await readIfThere(path));
  if (owner !== undefined && !(await isStale(path, pid))) return;
  await rm(path, { force: true }).catch((cause: unknown) => {
    throw ioError('remove', path, cause);
  });
}

function pidIn(text: string | undefined): number | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return isObject(value) && typeof value.pid === 'number' ? value.pid : undefined;
  } catch {
    return undefined;
  }
}
