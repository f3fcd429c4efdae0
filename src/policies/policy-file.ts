import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import type { RdError } from '../errors.ts';
import { tooLong } from '../settings/source-text.ts';
import { ioError, systemCode } from '../storage/io-error.ts';
import { invalidPolicy } from './policy.ts';

/**
 * Largest deployment file that is read, in bytes. One with every setting has some five thousand, but a list of patterns may be
 * long, and what a document of 1 MiB says takes several times as much in some formats.
 */
export const POLICY_LIMIT = 16 * 1024 * 1024;

/**
 * The bytes of a profile; `undefined` when there is no file. A link to a file is followed.
 * @throws RdError `ERR_PROFILE_INVALID` for what is there and cannot be read: passing over it would lift a protection.
 */
export async function readPolicyFile(path: string): Promise<Buffer | undefined> {
  try {
    // Opening a named pipe would wait for a writer.
    const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const stat = await handle.stat();
      if (stat.isDirectory()) throw notReadable(path, 'it is a directory');
      if (!stat.isFile()) throw notReadable(path, 'it is not a file');
      if (stat.size > POLICY_LIMIT) throw notReadable(path, `it ${tooLong(stat.size, POLICY_LIMIT)}`);
      const bytes = await handle.readFile();
      // It may have grown since.
      if (bytes.length > POLICY_LIMIT) throw notReadable(path, `it ${tooLong(bytes.length, POLICY_LIMIT)}`);
      return bytes;
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (systemCode(cause) !== 'ENOENT') throw unreadable(path, cause);
    if (await isLink(path)) throw notReadable(path, 'it is a link to a file that is not there');
    return undefined;
  }
}

/** The text, without a byte order mark; `undefined` where the bytes are of another encoding. */
export function decoded(bytes: Uint8Array, encoding: 'utf-8' | 'utf-16le' | 'utf-16be' = 'utf-8'): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function unreadable(path: string, cause: unknown): RdError {
  const known = ioError('read the deployment profile', path, cause, 'ERR_PROFILE_INVALID');
  return known === cause ? known : invalidPolicy(known.message, [], cause);
}

function notReadable(path: string, reason: string): RdError {
  return invalidPolicy(`could not read the deployment profile ${path}: ${reason}`);
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (stat) => stat.isSymbolicLink(),
    () => false,
  );
}
