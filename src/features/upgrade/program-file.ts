import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { access, copyFile, link, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RdError } from '../../errors.ts';
import { fileOperations } from '../../os/atomic-file.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { type ProcessTable, processTable } from '../../os/process-table.ts';
import { openToRead } from '../../os/regular-file.ts';
import type { Platform } from '../../settings/field.ts';

// The program and its predecessor are in one directory, because only there can a rename replace one with the other. Their names begin with a dot, so
// that neither `ls` nor the completion of a shell shows them among the programs of a directory on the PATH.

/** The operations that change the disk, one durable effect each; tests replace them to stop in between. */
export interface ProgramOperations {
  /** Gives a file a second name; copies it where the file system has no hard links. */
  link(from: string, to: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  syncDirectory(directory: string): Promise<void>;
}

const OPERATIONS: ProgramOperations = {
  async link(from, to) {
    await link(from, to).catch(async (error: unknown) => {
      if (systemCode(error) === 'EEXIST' || systemCode(error) === 'ENOENT') throw error;
      await copyFile(from, to, constants.COPYFILE_EXCL);
      await fileOperations.syncFile(to);
    });
  },
  rename,
  unlink,
  syncDirectory: fileOperations.syncDirectory,
};

export interface ProgramOptions {
  platform: Platform;
  operations?: ProgramOperations;
  /** Process table, by which the leftovers of a process that has ended are found and removed. */
  processes?: Pick<ProcessTable, 'isAlive'>;
}

/** The file of the running program, as it was when the command began. */
export interface ProgramFile {
  path: string;
  /** Path of the previous version, to go back to. It may be missing. */
  previous: string;
  /**
   * Copies a verified file beside the program, not yet into its place.
   * @throws RdError `ERR_UPGRADE_REFUSED` for another digest, `ERR_IO`. Nothing is left then.
   */
  stage(from: string, sha256: string): Promise<string>;
  /** Removes a staged file. */
  discard(staged: string): Promise<void>;
  /**
   * Replaces the program by a staged file; the program becomes the previous one. At every instant there is a complete program.
   * @throws RdError `ERR_IO`, and `ERR_UPGRADE_REFUSED` when something else has replaced the program meanwhile.
   */
  replace(staged: string): Promise<void>;
  /** Whether there is a previous program to go back to. */
  hasPrevious(): Promise<boolean>;
  /**
   * Exchanges the program and the previous one.
   * @throws RdError `ERR_IO`, and `ERR_UPGRADE_REFUSED` when something else has replaced the program meanwhile.
   */
  goBack(): Promise<void>;
}

const READ_BYTES = 1 << 20;
const LEFTOVER = /^(new|kept|old)-(\d+)\.tmp$/;

/**
 * Opens the file of a program for replacement, and removes the leftovers of a killed upgrade beside it.
 * @throws RdError `ERR_IO` for a directory that cannot be written.
 */
export async function openProgram(path: string, options: ProgramOptions): Promise<ProgramFile> {
  const { platform, processes = processTable, operations = OPERATIONS } = options;
  const directory = dirname(path);
  const beside = (suffix: string) => join(directory, `.${basename(path)}.${suffix}`);
  const previous = beside('previous');
  const before = await factsOf(path);
  await access(directory, constants.W_OK).catch((cause: unknown) => {
    throw failure('write', directory, cause);
  });
  await cleanUp();

  /** Returns a name of this process, so that two at once do not touch each other's files. */
  const own = (what: 'new' | 'kept') => beside(`${what}-${process.pid}.tmp`);

  async function cleanUp(): Promise<void> {
    const prefix = beside('');
    for (const name of (await readdir(directory)).map((each) => join(directory, each))) {
      const [, what, pid] = (name.startsWith(prefix) && LEFTOVER.exec(name.slice(prefix.length))) || [];
      if (pid === undefined) continue;
      if (Number(pid) !== process.pid && (await processes.isAlive({ pid: Number(pid) }))) continue;
      const facts = await factsIfThere(name);
      // A process was killed on the way back, with the program already exchanged: this version would have become the previous one.
      const isOnlyCopy = what === 'kept' && facts && !isSame(facts, before) && !(await factsIfThere(previous));
      await (isOnlyCopy ? operations.rename(name, previous) : operations.unlink(name)).catch((cause: unknown) => {
        // Windows does not remove a program that still runs.
        if (systemCode(cause) !== 'ENOENT' && what !== 'old') throw failure('remove', name, cause);
      });
    }
  }

  async function removeQuietly(file: string): Promise<void> {
    // If this fails, the next upgrade removes it.
    await operations.unlink(file).catch(() => undefined);
  }

  /** Gives the program a second name, if it is still the one that this command began with. */
  async function keep(): Promise<string> {
    const kept = own('kept');
    await operations.link(path, kept);
    const isUnchanged = isSame(await stat(kept), before) || isSame(await stat(path), before);
    if (isUnchanged) return kept;
    await removeQuietly(kept);
    throw replacedError(path);
  }

  /** Moves a file over the program. Windows cannot replace a running program, but it can rename it. */
  async function moveOver(from: string): Promise<void> {
    if (platform !== 'win32') return operations.rename(from, path);
    const aside = beside(`old-${process.pid}.tmp`);
    await operations.rename(path, aside);
    try {
      await operations.rename(from, path);
    } catch (error) {
      await operations.rename(aside, path);
      throw error;
    }
    await removeQuietly(aside);
  }

  return {
    path,
    previous,
    async stage(from, sha256) {
      const staged = own('new');
      try {
        const digest = await copy(from, staged, before.mode & 0o777);
        if (digest !== sha256) {
          throw new RdError('ERR_UPGRADE_REFUSED', `${from} is not the file that was signed: its sha256 is ${digest}`, {
            advice: 'Nothing was changed. Report it to the publisher of the release.',
          });
        }
        return staged;
      } catch (error) {
        await removeQuietly(staged);
        throw error;
      }
    },
    discard: removeQuietly,
    async replace(staged) {
      try {
        const kept = await keep();
        await operations.rename(kept, previous).catch(async (error: unknown) => {
          await removeQuietly(kept);
          throw error;
        });
        // After an upgrade that was killed at this point, both are names of one file, and a rename does nothing.
        await removeQuietly(kept);
        await moveOver(staged);
        await operations.syncDirectory(directory);
      } catch (cause) {
        throw failure('replace', path, cause);
      }
    },
    async hasPrevious() {
      const facts = await factsIfThere(previous);
      // An upgrade that was killed before the exchange has left another name of the program itself.
      return facts !== undefined && !isSame(facts, before);
    },
    async goBack() {
      try {
        const kept = await keep();
        await moveOver(previous).catch(async (error: unknown) => {
          await removeQuietly(kept);
          throw error;
        });
        await operations.rename(kept, previous);
        await operations.syncDirectory(directory);
      } catch (cause) {
        if (systemCode(cause) === 'ENOENT') throw replacedError(path);
        throw failure('replace', path, cause);
      }
    },
  };
}

/** Copies a file, flushed, and returns its sha256. */
async function copy(from: string, to: string, mode: number): Promise<string> {
  const source = await openToRead(from, { follow: true }).catch((cause: unknown) => {
    throw failure('read', from, cause);
  });
  try {
    const hash = createHash('sha256');
    const target = await open(to, 'wx', 0o700);
    try {
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      for (;;) {
        const { bytesRead } = await source.read(buffer, 0, buffer.length);
        if (bytesRead === 0) break;
        const part = buffer.subarray(0, bytesRead);
        hash.update(part);
        await target.appendFile(part);
      }
      await target.chmod(mode);
      await target.sync();
    } finally {
      await target.close();
    }
    return hash.digest('hex');
  } catch (cause) {
    throw failure('write', to, cause);
  } finally {
    await source.close();
  }
}

async function factsOf(path: string): Promise<Stats> {
  return stat(path).catch((cause: unknown) => {
    throw failure('read', path, cause);
  });
}

function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev;
}

/** Returns the facts of a file; undefined if it does not exist. */
async function factsIfThere(path: string): Promise<Stats | undefined> {
  return stat(path).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw failure('read', path, cause);
  });
}

function replacedError(path: string): RdError {
  return new RdError(
    'ERR_UPGRADE_REFUSED',
    `${path} was replaced by something else meanwhile, perhaps by another upgrade`,
    {
      advice: 'This command changed nothing. Look with `rdctl version`, and try again if needed.',
    },
  );
}

/** Returns an `ERR_IO` error. The advice of `ioError` would be about the files of a home. */
function failure(action: string, path: string, cause: unknown): RdError {
  const error = ioError(action, path, cause);
  if (error === cause || !error.advice?.includes('RDCTL_HOME')) return error;
  return new RdError(error.code, error.message, {
    cause,
    advice: 'The program is as it was. Make its directory writable, or move the program to another one.',
  });
}
