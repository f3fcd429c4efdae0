import { readdirSync, renameSync, unlinkSync } from 'node:fs';
import { link, lstat, open, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type FileOperations, fileOperations } from '../os/atomic-file.ts';
import { makeDirectory } from '../os/directory.ts';
import { ioError, systemCode } from '../os/io-error.ts';

/** Maximum number of pieces in use at once: locks and their drafts, and the state file. */
const PIECES = 8;
/** The smallest allocation of a file system. */
const BYTES = 4096;

function pieces(directory: string): string[] {
  return Array.from({ length: PIECES }, (_, index) => join(directory, 'reserve', String(index)));
}

/**
 * Reserves space in the state directory for the few small files written during a stop: on a full disk they reuse reserve files. Existing pieces stay.
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
 * Returns file operations that work on a full disk, for small files in `directory` and below it. A piece of the reserve is renamed and overwritten,
 * which needs no space and cannot lose it to another program, as freed space could; the replaced file becomes a piece in turn. So the reserve keeps
 * its size, however often it is used.
 */
export function withReserve(directory: string): FileOperations {
  return {
    ...fileOperations,
    async writeNew(path, data, mode) {
      try {
        await fileOperations.writeNew(path, data, mode);
      } catch (error) {
        if (!isFull(error)) throw error;
        // The file was created but not written.
        await unlink(path).catch(() => undefined);
        if (Buffer.byteLength(data) > BYTES || !(await takePiece(directory, path))) throw error;
        await overwrite(path, data);
      }
    },
    async rename(from, to) {
      await givePiece(directory, to);
      renameSync(from, to);
    },
    async unlink(path) {
      await givePiece(directory, path);
      unlinkSync(path);
    },
  };
}

/** True for an error of a full disk. */
export function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(systemCode(error) ?? '');
}

async function takePiece(directory: string, path: string): Promise<boolean> {
  for (const piece of pieces(directory)) {
    const taken = await rename(piece, path).then(
      () => true,
      () => false,
    );
    if (!taken) continue;
    // A process killed while returning a piece left the file under both names: writing here would change it.
    if ((await lstat(path)).nlink === 1) return true;
    await unlink(path);
  }
  return false;
}

/** Makes a replaced file the missing piece. Without hard links its space is just freed. */
async function givePiece(directory: string, path: string): Promise<void> {
  for (const piece of missing(directory)) {
    const given = await link(path, piece).then(
      () => 'given',
      (error: unknown) => systemCode(error),
    );
    if (given !== 'EEXIST') return;
  }
}

/** Returns the paths of missing pieces. */
function missing(directory: string): string[] {
  let there: string[] = [];
  try {
    there = readdirSync(join(directory, 'reserve'));
  } catch {
    // An unreadable reserve lacks all pieces.
  }
  return pieces(directory).filter((each) => !there.includes(basename(each)));
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

/** Returns the file operations of the reserve for a lock or another small file in this state directory. */
export function reserveBeside(path: string): FileOperations {
  return withReserve(dirname(path));
}
