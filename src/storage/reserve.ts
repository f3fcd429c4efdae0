import { link, lstat, open, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type FileOperations, fileOperations } from './atomic-file.ts';
import { makeDirectory } from './directory.ts';
import { ioError, systemCode } from './io-error.ts';

/** As many as can be in use at once: locks and their drafts, and the state file. */
const PIECES = 8;
/** What a file system gives to the smallest file. */
const BYTES = 4096;

function pieces(directory: string): string[] {
  return Array.from({ length: PIECES }, (_, index) => join(directory, 'reserve', String(index)));
}

/**
 * Puts room aside in the directory of the state, for the few small files that are written on the way of a stop: on a full disk they are
 * written into files of the reserve. What is there of it already stays.
 * @throws RdError `ERR_IO`.
 */
export async function fillReserve(directory: string): Promise<void> {
  await makeDirectory(join(directory, 'reserve'));
  for (const path of pieces(directory)) {
    await fileOperations.writeNew(path, Buffer.alloc(BYTES, '.'), 0o600).catch(async (cause: unknown) => {
      if (systemCode(cause) === 'EEXIST') return;
      await unlink(path).catch(() => undefined);
      throw ioError('write', path, cause);
    });
  }
}

/**
 * File operations that go on when the disk is full, for small files in `directory` and below it. A piece of the reserve is given a new name
 * and written over, which takes no room and cannot be lost to another program, as room that is set free could; what the new file
 * replaces takes the place of the piece. So the reserve stays as large as it is, however often it is used.
 */
export function withReserve(directory: string): FileOperations {
  return {
    ...fileOperations,
    async writeNew(path, data, mode) {
      try {
        await fileOperations.writeNew(path, data, mode);
      } catch (error) {
        if (!isFull(error)) throw error;
        // Created and not written.
        await unlink(path).catch(() => undefined);
        if (Buffer.byteLength(data) > BYTES || !(await takePiece(directory, path))) throw error;
        await overwrite(path, data);
      }
    },
    async rename(from, to) {
      await givePiece(directory, to);
      await rename(from, to);
    },
    async unlink(path) {
      await givePiece(directory, path);
      await unlink(path);
    },
  };
}

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(systemCode(error) ?? '');
}

async function takePiece(directory: string, path: string): Promise<boolean> {
  for (const piece of pieces(directory)) {
    const taken = await rename(piece, path).then(
      () => true,
      () => false,
    );
    if (!taken) continue;
    // A process that was killed while it gave a piece back left the file itself under both names: to write here would change that one.
    if ((await lstat(path)).nlink === 1) return true;
    await unlink(path);
  }
  return false;
}

/** A file that is about to lose its name gets that of a piece that is missing. Without second names its room is just set free. */
async function givePiece(directory: string, path: string): Promise<void> {
  for (const piece of pieces(directory)) {
    const given = await link(path, piece).then(
      () => 'given',
      (error: unknown) => systemCode(error),
    );
    if (given !== 'EEXIST') return;
  }
}

async function overwrite(path: string, data: string | Uint8Array): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.writeFile(data);
    await handle.truncate(Buffer.byteLength(data));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The reserve that a lock or another small file of the state in this directory lives on. */
export function reserveBeside(path: string): FileOperations {
  return withReserve(dirname(path));
}
