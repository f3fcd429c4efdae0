import { lstat, readdir, readFile, realpath, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { ioError, systemCode } from './io-error.ts';

/** The operations of a removal; tests replace them to let one fail. */
export interface RemovalOperations {
  unlink(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  /** Absolute paths of everything that is mounted somewhere. */
  mounts(): Promise<readonly string[]>;
}

export const removalOperations: RemovalOperations = { unlink, rmdir, mounts: mountPoints };

export interface Removal {
  /** These stay, with what is in them. */
  keep: ReadonlySet<string>;
  mounts: readonly string[];
  operations: RemovalOperations;
  /** `reason` is a clause. */
  failed: { path: string; reason: string }[];
}

/** Removes a file, a link or a directory with what is in it; links are not followed. Returns true when it is gone. */
export async function remove(path: string, removal: Removal): Promise<boolean> {
  return removeAt(path, await real(path), removal);
}

async function removeAt(path: string, realPath: string, removal: Removal): Promise<boolean> {
  const { keep, mounts, operations, failed } = removal;
  if (keep.has(path)) return false;
  try {
    const facts = await lstat(path);
    if (!facts.isDirectory()) {
      await operations.unlink(path);
      return true;
    }
    if (mounts.includes(realPath)) {
      failed.push({ path, reason: 'something is mounted there' });
      return false;
    }
    let empty = true;
    for (const name of await readdir(path)) {
      if (!(await removeAt(join(path, name), join(realPath, name), removal))) empty = false;
    }
    if (empty) await operations.rmdir(path);
    return empty;
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return true;
    const { message } = ioError('remove', '', cause);
    failed.push({ path, reason: message.slice(message.indexOf(': ') + 2) });
    return false;
  }
}

/** Where it really is, itself not followed: what the list of mounts shows. */
async function real(path: string): Promise<string> {
  const above = dirname(path);
  const realAbove = await realpath(above).catch(() => above);
  return join(realAbove, path.slice(above.length + (above.endsWith(sep) ? 0 : 1)));
}

/** Linux tells; elsewhere no engine of ours mounts anything. */
async function mountPoints(): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  return text
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path !== '')
    .map((path) => path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))));
}
