import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, lstat, open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeDirectory } from './directory.ts';
import { ioError, systemCode } from './io-error.ts';
import { type ReadOptions, readRegular } from './regular-file.ts';

/** The file operations of an atomic write, one durable effect each; tests replace them to stop in between. */
export interface FileOperations {
  mkdir(directory: string): Promise<void>;
  /** Creates the file (fails if it exists), writes all of it and flushes it to the disk. */
  writeNew(path: string, data: string | Uint8Array, mode: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Makes a rename in this directory survive a power failure. */
  syncDirectory(directory: string): Promise<void>;
  /** Flushes a file written by another program or a stream, so that it survives a power failure. */
  syncFile(path: string): Promise<void>;
  unlink(path: string): Promise<void>;
}

/** The real file system. */
export const fileOperations: FileOperations = {
  async mkdir(directory) {
    await makeDirectory(directory);
  },
  async writeNew(path, data, mode) {
    const handle = await open(path, 'wx', mode);
    try {
      await handle.writeFile(data);
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
  rename,
  async syncDirectory(directory) {
    // Windows cannot open a directory for this, and flushes the rename with the file.
    if (process.platform !== 'win32') await sync(directory, 'r');
  },
  syncFile: (path) => sync(path, 'r+'),
  unlink,
};

async function sync(path: string, flags: string): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export interface AtomicWriteOptions {
  /** Mode of the new file; 0600 by default. */
  mode?: number;
  /** Backup path of the previous content, which is written atomically too, with mode 0600. */
  previous?: string;
  operations?: FileOperations;
}

/**
 * Replaces a file so that at every instant, and after a crash at any instant, it holds the old or the new content.
 * Creates the directory (0700) if it is missing.
 * @throws RdError `ERR_IO` naming the file and what to do; the old content is then still in place.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  const { operations = fileOperations, mode = 0o600, previous } = options;
  try {
    await operations.mkdir(dirname(path));
    const before = previous === undefined ? undefined : await readIfThere(path, { follow: true });
    const contents =
      previous === undefined || before === undefined ? [] : [{ path: previous, data: before, mode: 0o600 }];
    await replaceAll([...contents, { path, data, mode }], operations);
  } catch (cause) {
    throw ioError('write', path, cause);
  }
}

/**
 * Replaces related files in existing directories: all are written before the first one is replaced. A kill in between leaves the first of them new
 * and the others old. Each file may have its own mode.
 * @throws RdError `ERR_IO` naming the file that could not be written; unless a rename failed, all old contents are still in place.
 */
export async function writeFilesAtomic(
  files: readonly { path: string; data: string | Uint8Array; mode?: number }[],
  { operations = fileOperations, mode = 0o600 }: Omit<AtomicWriteOptions, 'previous'> = {},
): Promise<void> {
  let at = '';
  const naming: FileOperations = {
    ...operations,
    writeNew: (temporary, data, bits) => {
      at = files.find(({ path }) => temporary.startsWith(temporaryPrefix(path)))?.path ?? temporary;
      return operations.writeNew(temporary, data, bits);
    },
    rename: (from, to) => {
      at = to;
      return operations.rename(from, to);
    },
  };
  try {
    await replaceAll(
      files.map((file) => ({ mode, ...file })),
      naming,
    );
  } catch (cause) {
    throw ioError('write', at, cause);
  }
}

/**
 * Creates a file in an existing directory so that it appears complete or not at all. `writeNew`: creates its draft.
 * @throws the system error; `EEXIST` when the name is taken.
 */
export async function createFileAtomic(
  path: string,
  data: string,
  mode = 0o600,
  { writeNew }: Pick<FileOperations, 'writeNew'> = fileOperations,
): Promise<void> {
  const temporary = `${temporaryPrefix(path)}${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeNew(temporary, data, mode);
    // Unlike a rename, a link fails when the name is taken.
    await link(temporary, path).catch(async (error: unknown) => {
      if (systemCode(error) === 'EEXIST') throw error;
      // Fallback for a file system without hard links.
      await copyFile(temporary, path, constants.COPYFILE_EXCL);
    });
    await fileOperations.syncDirectory(dirname(path));
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

/** Writes all files before it replaces any, so that a full disk leaves all of them unchanged. */
async function replaceAll(
  contents: readonly { path: string; data: string | Uint8Array; mode: number }[],
  operations: FileOperations,
): Promise<void> {
  const written: { temporary: string; path: string }[] = [];
  try {
    for (const { path, data, mode } of contents) {
      const temporary = `${temporaryPrefix(path)}${randomBytes(6).toString('hex')}.tmp`;
      written.push({ temporary, path });
      await operations.writeNew(temporary, data, mode);
    }
    for (let next = written[0]; next; next = written[0]) {
      await operations.rename(next.temporary, next.path);
      written.shift();
      await operations.syncDirectory(dirname(next.path));
    }
  } catch (error) {
    // The write has failed already; a leftover is removed at the next start.
    for (const { temporary } of written) await operations.unlink(temporary).catch(() => undefined);
    throw error;
  }
}

function temporaryPrefix(path: string): string {
  return join(dirname(path), `.${basename(path)}.`);
}

/** Removes temporary files that a killed writer of `path` left. Call it only while nothing else may write `path`. */
export async function removeLeftovers(path: string, operations: FileOperations = fileOperations): Promise<string[]> {
  const directory = dirname(path);
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw ioError('read', directory, error);
  });
  const prefix = `.${basename(path)}.`;
  const leftovers = names.filter(
    (name) => name.startsWith(prefix) && /^[0-9a-f]{12}\.tmp$/.test(name.slice(prefix.length)),
  );
  for (const name of leftovers) {
    await operations.unlink(join(directory, name)).catch((error: unknown) => {
      if (systemCode(error) !== 'ENOENT') throw ioError('remove', join(directory, name), error);
    });
  }
  return leftovers;
}

/** Returns the text of a file, or undefined if there is none. Throws the other errors of `readRegular`. */
export async function readIfThere(path: string, options: ReadOptions = {}): Promise<string | undefined> {
  try {
    return (await readRegular(path, options)).toString('utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Renames an unusable file to `<path>.corrupt-<time>` for inspection, never over another one.
 * @returns the new path.
 */
export async function setAside(path: string, now: number): Promise<string> {
  const target = await keepAside(path, now);
  await unlink(path).catch((cause: unknown) => {
    throw ioError('set aside', path, cause);
  });
  return target;
}

/**
 * Gives an unusable file a second name, `<path>.corrupt-<time>`, and keeps the original one until the file is replaced. Repeated failing starts add
 * only one name. A link that a person may have there stands for its target, of which a copy is kept.
 * @returns the new path.
 */
export async function keepAside(path: string, now: number): Promise<string> {
  const linked = (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;
  const known = await (linked ? sameCopy(path) : otherName(path));
  if (known !== undefined) return known;
  const stamp = new Date(now).toISOString().replace(/[-:]/g, '').replace('.', '');
  for (let attempt = 0; ; attempt += 1) {
    const target = `${path}.corrupt-${stamp}${attempt === 0 ? '' : `-${attempt}`}`;
    try {
      // Unlike a rename, a link fails when the name is taken.
      await (linked ? copyFile(path, target, constants.COPYFILE_EXCL) : link(path, target));
      return target;
    } catch (cause) {
      if (systemCode(cause) !== 'EEXIST') throw ioError('set aside', path, cause);
    }
  }
}

/** Returns the copy that an earlier `keepAside` made of the target of this link. */
async function sameCopy(path: string): Promise<string | undefined> {
  try {
    const bytes = await readRegular(path, { follow: true });
    const prefix = `${basename(path)}.corrupt-`;
    for (const name of (await readdir(dirname(path))).filter((each) => each.startsWith(prefix))) {
      const other = await readRegular(join(dirname(path), name)).catch(() => undefined);
      if (other?.equals(bytes)) return join(dirname(path), name);
    }
    return undefined;
  } catch (cause) {
    throw ioError('set aside', path, cause);
  }
}

/** Returns the name that an earlier `keepAside` gave to this very file. */
async function otherName(path: string): Promise<string | undefined> {
  try {
    const { ino, dev, nlink } = await lstat(path);
    if (nlink < 2) return undefined;
    const directory = dirname(path);
    const prefix = `${basename(path)}.corrupt-`;
    for (const name of (await readdir(directory)).filter((each) => each.startsWith(prefix))) {
      const other = await lstat(join(directory, name));
      if (other.ino === ino && other.dev === dev) return join(directory, name);
    }
    return undefined;
  } catch (cause) {
    throw ioError('set aside', path, cause);
  }
}
