import { unlink } from 'node:fs/promises';
import { isObject } from '../json.ts';
import { readIfThere, writeFileAtomic } from './atomic-file.ts';
import { ioError, systemCode } from './io-error.ts';

/** The document of `schemas/connection.json`, in the order in which it is written. */
export interface ConnectionDocument {
  user: string;
  password: string;
  port: number;
  pid: number;
}

/** Announces a service that listens; only its user can read the file. */
export async function writeConnectionFile(
  path: string,
  { user, password, port, pid }: ConnectionDocument,
): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify({ user, password, port, pid }, null, 2)}\n`);
}

/** Withdraws the announcement of this process; that of another one is left alone. */
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
