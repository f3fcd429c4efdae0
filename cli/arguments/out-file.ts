import type { Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { RdError } from '../../src/errors.ts';
import type { Io } from '../command.ts';
import { usage } from './arguments.ts';
import { quote } from './literals.ts';

export interface OutFile {
  /** Permission bits; a file that is replaced keeps those that it has, as far as they allow less. */
  mode: number;
  /** Permission bits are those whatever the umask of the caller says. */
  exact?: true;
  /** Replace a file that is there; else it is an error. */
  replace: boolean;
}

/**
 * The absolute path that `--out-file`, or a flag like it, was given; `undefined` without it.
 * @throws RdError `ERR_USAGE` for no name, for `-`, and for one that can only be that of a directory: `team.yaml/` is not the
 *   file `team.yaml`, though paths are resolved to that.
 */
export function outFilePath<T extends string | undefined>(
  name: T,
  { cwd, platform }: Pick<Io, 'cwd' | 'platform'>,
  flag = 'out-file',
): T | string {
  if (name === undefined) return name;
  if (name === '') throw usage(`--${flag} was given an empty name`);
  if (name === '-') throw usage(`--${flag} "-" is no name of a file`, 'For a file that is called so, write ./-');
  if ((platform === 'win32' ? /(?:^|[\\/])\.{0,2}$/ : /(?:^|\/)\.{0,2}$/).test(name)) {
    throw usage(`--${flag} ${quote(name)} names a directory, and a file is written`);
  }
  return resolve(cwd, name);
}

/**
 * Writes what `--out-file` names: the whole file or none of it. What is there and is no plain file, such as a device, is written
 * to in place; of a link, what it leads to is replaced.
 * @returns true when another file was there before.
 * @throws RdError `ERR_IO`, also for a directory that is missing: that is a mistake in the name.
 */
export async function writeOutFile(path: string, data: string | Uint8Array, options: OutFile): Promise<boolean> {
  const [replaced = false] = await writeOutFiles([{ path, data }], options);
  return replaced;
}

/**
 * The same for files that belong together. All are written beside their places before the first one is put there, so that a full
 * disk leaves them as they were; what is killed between two of them leaves the first one new and the others old.
 * @returns for each of them, true when another file was there before.
 */
export async function writeOutFiles(
  files: readonly { path: string; data: string | Uint8Array }[],
  { mode, exact, replace }: OutFile,
): Promise<boolean[]> {
  const [{ chmod, lstat, realpath, writeFile }, { fileOperations, writeFilesAtomic }] = await Promise.all([
    import('node:fs/promises'),
    import('../../src/storage/atomic-file.ts'),
  ]);
  const operations = {
    ...fileOperations,
    mkdir: async () => undefined,
    async writeNew(temporary: string, content: string | Uint8Array, bits: number) {
      await fileOperations.writeNew(temporary, content, bits);
      if (exact) await chmod(temporary, bits);
    },
  };
  const replaced: boolean[] = [];
  const plain: { path: string; data: string | Uint8Array; mode: number }[] = [];
  const inPlace: { path: string; data: string | Uint8Array }[] = [];
  for (const file of files) {
    const { path, data } = file;
    const found = await lstat(path).catch(() => undefined);
    if (found && !replace) {
      throw new RdError('ERR_IO', `${path} exists already`, { advice: 'Choose another name, or add --force.' });
    }
    const reached = found && (await reachedBy(path));
    replaced.push(reached?.isFile() ?? false);
    if (reached && !reached.isFile()) inPlace.push(file);
    else plain.push({ path: found ? await realpath(path) : path, data, mode: mode & (reached?.mode ?? 0o777) });
  }
  for (const { path, data } of inPlace) {
    await writeFile(path, data).catch(async (cause: unknown) => {
      throw await outFileError(path, cause);
    });
  }
  await writeFilesAtomic(plain, { operations }).catch(async (cause: unknown) => {
    // Of several files, the error names the one that failed.
    throw await outFileError(files.length === 1 ? files[0]?.path : undefined, cause);
  });
  return replaced;
}

/** What stands at the path or is linked from there. */
async function reachedBy(path: string): Promise<Stats> {
  const { stat } = await import('node:fs/promises');
  return stat(path).catch((cause: unknown) => {
    throw new RdError('ERR_IO', `could not write ${path}: it is a link that leads nowhere`, {
      cause,
      advice: 'Remove the link, or choose another path.',
    });
  });
}

/** The advice of the storage is about directories of our own. */
async function outFileError(path: string | undefined, failure: unknown): Promise<RdError> {
  const { ioError, systemCode } = await import('../../src/storage/io-error.ts');
  const { message, cause, advice } = ioError('write', path ?? '', failure);
  const code = systemCode(cause);
  if (code === 'ENOENT' && path !== undefined) {
    return new RdError('ERR_IO', `could not write ${path}: there is no directory ${dirname(path)}`, {
      cause,
      advice: 'Create it first, or choose another path.',
    });
  }
  const ours = advice?.includes('RDCTL_HOME') ?? false;
  return new RdError('ERR_IO', message, {
    cause,
    ...(ours ? { advice: 'Choose a path that can be written to.' } : advice === undefined ? {} : { advice }),
  });
}
